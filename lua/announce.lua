-- announce: one instance says that it is there, and learns how many are.
--
-- Purpose: counts the instances of a limiter that reach this server now, and the
-- most that lately did. Every instance calls it about once a second.
--
-- KEYS[1]  the limiter (the only key touched): a sorted set. A member is the id of
--          an instance, with the time that it was last seen as score; a young one,
--          not yet counted among those that lately were there, has the time
--          that it was first seen plus YOUNG. Members of one letter or digit are what the
--          limiter remembers besides, with a negative score, -1 - the number:
--            v      format of the state
--            r      when the last call came, on the clock of Redis
--            c      the time: it goes on with that clock by at most STEP a call, so
--                   that a clock that is set, or a time without calls, ages nobody
--            0..6   the most that were there during one sixth of the window, and
--                   which sixth that was
-- ARGV[1]  format of the message (1)
-- ARGV[2]  id of the instance: random, per process start, of more than one letter
-- ARGV[3]  window in ms: for how long one that is gone is counted as lately there
-- ARGV[4]  1: it leaves, and is not missed
--
-- Times are milliseconds. Returns four integers as strings: format, status (0, or
-- 1: the state is of a newer format, and nothing was changed), how many are there,
-- and the most that lately were, at least as many.
--
-- Atomicity: one script. Cluster: one key. Work: grows with the logarithm of the
-- number of instances; whoever was not seen for GONE is removed.

local now = math.floor(clock() / 1000)
local STEP, GONE, YOUNG, COUNTS, DAY = 1100, 2500, 1099511627776, 1048576, 86400000
local id, window, leaves = ARGV[2], tonumber(ARGV[3]), ARGV[4] == '1'
if #ARGV ~= 4 or not window then return redis.error_reply('ERR wrong arguments') end

local known = {}
local notes = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '-1', 'WITHSCORES')
for i = 1, #notes, 2 do known[notes[i]] = -1 - tonumber(notes[i + 1]) end
if (known.v or FORMAT) > FORMAT then return { int(FORMAT), '1', '0', '0' } end

local time = (known.c or 3600000) + math.max(0, math.min(now - (known.r or now), STEP))
local alive = time - GONE
local grown = redis.call('ZCOUNT', KEYS[1], int(alive), int(YOUNG - 1))
local young = redis.call('ZCOUNT', KEYS[1], int(YOUNG + alive - STEP), '+inf')

-- The one that calls. It is young until it has lived for longer than one that is
-- gone is taken to be there, so that a new process in place of one that was killed
-- is never counted beside it.
local seen = tonumber(redis.call('ZSCORE', KEYS[1], id) or '0')
local score
if seen >= YOUNG + alive then
  young, score = young - 1, seen
elseif seen >= YOUNG then
  score = time -- it is old enough
  if seen >= YOUNG + alive - STEP then young = young - 1 end
elseif seen >= alive then
  grown, score = grown - 1, time
else
  score = known.c and YOUNG + time or time -- the very first is nobody's successor
end
if leaves then
  score = nil
elseif score >= YOUNG then
  young = young + 1
else
  grown = grown + 1
end

-- The most that were there in each sixth of the window. Who leaves was never there.
local sixth = math.max(1000, math.floor(window / 6))
local slot, peak = math.floor(time / sixth), 0
local set = { int(-1 - FORMAT), 'v', int(-1 - now), 'r', int(-1 - time), 'c' }
for i = 0, 6 do
  local digit, most = string.format('%d', i), 0
  local stored = known[digit]
  local its = stored and math.floor(stored / COUNTS) or -1
  if its > slot - 7 and its <= slot then
    most = math.fmod(stored, COUNTS)
    if leaves and seen > 0 and seen < YOUNG then most = math.max(0, most - 1) end
  else
    its = -1
  end
  if i == math.fmod(slot, 7) then its, most = slot, math.max(its == slot and most or 0, grown) end
  if its >= 0 then
    peak = math.max(peak, most)
    set[#set + 1] = int(-1 - its * COUNTS - most)
    set[#set + 1] = digit
  end
end

if score then
  set[#set + 1] = int(score)
  set[#set + 1] = id
else
  redis.call('ZREM', KEYS[1], id)
end
redis.call('ZADD', KEYS[1], unpack(set))
redis.call('ZREMRANGEBYSCORE', KEYS[1], '0', int(alive - 1))
redis.call('ZREMRANGEBYSCORE', KEYS[1], int(YOUNG), int(YOUNG + alive - 2 * GONE))
redis.call('PEXPIRE', KEYS[1], int(window + DAY)) -- a clock that is set forgets nobody

local there = grown + young
if window == 0 then peak = there end
return { int(FORMAT), '0', int(there), int(math.max(there, peak)) }
