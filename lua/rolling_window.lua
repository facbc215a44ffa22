-- rolling_window: about n tokens in every window of a period, by ten counters.
--
-- Purpose: decides waiting requests by an estimate of what was admitted within the
-- last period: what the counters say that lie in it, and of the oldest one, which
-- the period cuts, the part that lies in it, rounded down: rounded up, a limit of a few
-- would lose up to a tenth.
--
-- KEYS, ARGV and replies: see window.lua. There are no leases: wishes for one
-- are not heard. What is given back (charge < 0) is taken off the latest counter.
--
-- State, one hash: l the limit (see bucket.lua), s when counter 0 began, k by how
-- many us the clock of the counters is ahead of that of Redis, which may have stepped
-- back, g until when the limit stands, and for each counter its number and the
-- tokens admitted in its time. A counter is of a tenth of a period, rounded up;
-- the period need not be a multiple of it.
--
-- Atomicity: one script, reads before the writes. Cluster: one key. Work: one
-- HGETALL of at most 16 fields; counters that have left are deleted by the message
-- that finds them. The key lives until the last counter has left.

local now = clock()
local op = opening()
if not op then return redis.error_reply('ERR wrong arguments') end

local f, counters = {}, {}
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  local number = tonumber(all[i])
  if number then
    counters[number] = tonumber(all[i + 1])
  else
    f[all[i]] = all[i + 1]
  end
end
local w = begin(f.l, f.g, op, now)
if w.newer then return head(w, NEWER) end

local function layout(limit)
  local period = ceildiv(limit.burst * limit.den, limit.num)
  return period, ceildiv(period, 10)
end

-- of brings what the stored counters say into a state: where they begin, the
-- latest of them, the instant on their clock, those that have not left.
local start, skew = tonumber(f.s or now), tonumber(f.k or 0)
local t, latest, full, gone = now, 0, 0, {}
local cut, part = -1, 0 -- the counter that the period cuts, and what is in of it in thousandths
local period, width

local function place()
  latest, full, cut, part, gone = 0, 0, -1, 0, {}
  for number in pairs(counters) do latest = math.max(latest, number) end
  -- The clock of the counters does not go back behind the latest one.
  skew = math.max(skew, start + latest * width - now)
  t = now + skew
  local from = t - period - start -- everything up to here has left
  if from >= 0 then
    cut = floordiv(from, width)
    part = ceildiv(((cut + 1) * width - from) * 1000, width)
  end
  for number, count in pairs(counters) do
    if number < cut then
      gone[#gone + 1] = int(number)
      counters[number] = nil
    elseif number > cut then
      full = full + count
    end
  end
end

local function used()
  return full + floordiv((counters[cut] or 0) * part, 1000)
end

local stored = f.l and string.match(f.l, '^%d+ (%d+) (%d+) (%d+) %d+$')
local anew = f.l and not (stored and f.s)
if anew then counters = {} end
if f.l and not anew then
  local num, den, burst = string.match(f.l, '^%d+ (%d+) (%d+) (%d+) %d+$')
  local _, before = layout({ num = tonumber(num), den = tonumber(den), burst = tonumber(burst) })
  period, width = layout(w.limit)
  if before ~= width then
    -- The counters were of another length: what they say counts as of now.
    local now_period, now_width = period, width
    period, width = layout({ num = tonumber(num), den = tonumber(den), burst = tonumber(burst) })
    place()
    local sum = used()
    period, width, anew = now_period, now_width, true
    counters, start, skew = sum > 0 and { [0] = sum } or {}, now, 0
  end
end
period, width = layout(w.limit)
place()
if next(counters) == nil then -- all has left: the next window begins with its first request
  anew = f.l and true
  start, skew = now, 0
  place()
end

local function measure()
  w.left = lower(w.n - used(), w.n)
  local newest = -1
  for number, count in pairs(counters) do
    if count > 0 then newest = math.max(newest, number) end
  end
  w.reset = newest >= 0 and start + (newest + 1) * width + period - t or 0
  w.fits = function(n)
    if n <= w.left then return 0 end
    local rest = full
    for number = math.max(cut, 0), newest do
      local count = counters[number] or 0
      if number > cut then rest = rest - count end
      -- When this one has left as far as is needed, if that is enough.
      if count > 0 and rest <= w.n - n then
        local may = math.min(1000, ceildiv((w.n - n - rest + 1) * 1000, count) - 1)
        return math.max(1, start + (number + 1) * width - floordiv(may * width, 1000) + period - t)
      end
    end
    return w.reset
  end
end

if op ~= 'acquire' then
  if op == 'reset' then
    redis.call('UNLINK', KEYS[1])
    counters, full = {}, 0
  end
  measure()
  return seen(w)
end

-- A charge is made as far as one limit of debt.
local number = floordiv(t - start, width)
local mine, charge = counters[number] or 0, owed(w, f.l)
local before = mine
local left = w.n - used()
if charge > 0 then
  w.beyond = charge - math.max(0, math.min(charge, left + w.n))
  charge = charge - w.beyond
end
-- What is given back is taken from the counter that it was counted in, which leaves
-- when the message says.
local of, emptied = number, false
if charge < 0 and tonumber(ARGV[10]) > 0 then
  of = floordiv(math.max(0, t + tonumber(ARGV[10]) - period - start) + floordiv(width, 2), width) - 1
end
if of ~= number then
  if counters[of] then
    local back = math.min(-charge, counters[of])
    counters[of] = counters[of] - back
    if of > cut then full = full - back end
    left = w.n - used()
    emptied = counters[of] == 0
    if emptied then counters[of] = nil end
  end
  charge = 0
end
charge = math.max(charge, -mine)
local rest, granted, missing = decide(w, left - charge)
mine = mine + left - rest
full = full + mine - before
counters[number] = mine > 0 and mine or nil

if anew or f.l and next(counters) == nil then redis.call('UNLINK', KEYS[1]) end
measure()
if next(counters) ~= nil then
  local set = { 'l', limit_text(w.limit), 's', int(start) }
  local function put(field, value, stored_text)
    if value ~= '0' or stored_text and not anew then
      set[#set + 1] = field
      set[#set + 1] = value
    end
  end
  put('k', int(skew), f.k)
  put('g', int(w.stands), f.g)
  if anew then
    for i, count in pairs(counters) do put(int(i), int(count)) end
  elseif mine > 0 and mine ~= before then
    put(int(number), int(mine))
  elseif mine < before then
    gone[#gone + 1] = int(number)
  end
  if emptied then
    gone[#gone + 1] = int(of)
  elseif of ~= number and counters[of] and not anew then
    put(int(of), int(counters[of]))
  end
  redis.call('HSET', KEYS[1], unpack(set))
  if #gone > 0 and not anew then redis.call('HDEL', KEYS[1], unpack(gone)) end
  redis.call('PEXPIRE', KEYS[1], int(ceildiv(w.reset, 1000) + 1000))
end
return told(w, tonumber(ARGV[3]), 0, granted, missing)
