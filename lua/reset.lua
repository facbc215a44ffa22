-- reset: the root starts again with what is not out on lease.
--
-- Purpose: forgives what was spent. Leases stay counted, so that their holders
-- and the root together never hold more than the burst.
--
-- KEYS[1]    the bucket (the only key touched)
-- ARGV[1]    format of the message (1)
-- ARGV[2..5] limit: rate numerator and denominator (micro-tokens per
--            microsecond), burst (micro-tokens), version
--
-- Returns the seven integers of level() (see bucket.lua) as strings. Status 1:
-- the state is of a newer format, and nothing was changed; 3: it is under another
-- limit, whose four numbers come last.
--
-- Atomicity: one script, reads before the one save. Cluster: one key. Work: one
-- HMGET and one save.

local now = clock()
local b = load(limit_of(2), now, '')
if b.format > FORMAT then return level(b, now, NEWER) end
refill(b, now)
b.tokens = math.max(0, b.limit.burst - b.out)
b.frac = 0
save(b, now)
return complete(level(b, now, OK), b)
