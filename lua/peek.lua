-- peek: what the root bucket holds now.
--
-- Purpose: reads the level without writing anything, not even a TTL.
--
-- KEYS[1]    the bucket (the only key touched)
-- ARGV[1]    format of the message (1)
-- ARGV[2..5] limit: rate numerator and denominator (micro-tokens per
--            microsecond), burst (micro-tokens), version
--
-- Returns the seven integers of level() (see bucket.lua) as strings. Status 1:
-- the state is of a newer format; 3: it is under another limit, whose four
-- numbers come last.
--
-- Atomicity: reads only. Cluster: one key. Work: one HMGET.

local now = clock()
local b = load(limit_of(2), now, '')
if b.format > FORMAT then return level(b, now, NEWER) end
refill(b, now)
return complete(level(b, now, OK), b)
