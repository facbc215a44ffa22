-- tiers: several token buckets under one key, of which a request takes from all or
-- from none.
--
-- This text stands between bucket.lua and acquire.lua, peek.lua or reset.lua. These
-- see one bucket, which holds what the least of all holds; what they take from it or
-- give back is then taken from each, or given back. What is on lease is on lease from
-- each, so that T + O <= B holds in every one of them. There are lumps only: the
-- holder wants no rate.
--
-- ARGV, besides what those scripts take: of each further tier rate numerator, rate
-- denominator and burst, in their units, then how many further tiers there are. Peek
-- and reset have the operation before that, as in window.lua.
--
-- Returns what those scripts return, and besides, as in window.lua: when what was
-- refused fits, and when all is full; then, of acquire, what each tier holds.
--
-- State: that of bucket.lua for the first tier, and z for the others: "num den burst
-- tokens fraction" each, at the instant s. Tiers are those of who asks; one that was
-- not there before starts full.
--
-- Atomicity: as before; HSET and PEXPIRE follow the save. Work: one HGET more.

local further = {}
for i = tonumber(table.remove(ARGV)), 1, -1 do
  local burst, den, num = table.remove(ARGV), table.remove(ARGV), table.remove(ARGV)
  further[i] = { limit = { num = tonumber(num), den = tonumber(den), burst = tonumber(burst) }, rates = 0 }
end
local looks = #ARGV == 6
local charge = 0
if not looks and ARGV[17] then -- of each tier as much, down to a debt of its own burst
  charge, ARGV[17] = tonumber(ARGV[17]) or 0, '0'
end

local bucket_load, bucket_refill, bucket_save, bucket_complete = load, refill, save, complete

local function load(asked, now, id, grace, live, peak)
  local b = bucket_load(asked, now, id, grace, live, peak)
  if b.format > FORMAT then return b end
  local stored = {}
  for num, den, burst, tokens, frac in
    string.gmatch(redis.call('HGET', KEYS[1], 'z') or '', '(%d+) (%d+) (%d+) (-?%d+) (%d+)') do
    stored[#stored + 1] = {
      tokens = tonumber(tokens), frac = tonumber(frac),
      same = { num = tonumber(num), den = tonumber(den), burst = tonumber(burst) },
    }
  end
  for i, t in ipairs(further) do
    t.live, t.peak, t.frac = b.live, b.peak, 0
    local s = stored[i]
    if s then
      t.tokens = math.max(math.min(s.tokens, t.limit.burst), -t.limit.burst)
      if s.same.num == t.limit.num and s.same.den == t.limit.den then t.frac = s.frac end
    else
      t.tokens = part_of(t, t.limit.burst)
    end
  end
  return b
end

-- least is what a request finds. The answer tells of no more debt than that of the
-- first tier.
local function least(b)
  local tokens = b.tokens
  for _, t in ipairs(further) do tokens = math.min(tokens, t.tokens) end
  return math.max(tokens, -b.limit.burst)
end

local beyond = 0 -- what of the charge lies beyond the debt of some tier, at most

local function debit(x, out)
  if charge > 0 then
    local before = x.tokens
    x.tokens = math.max(x.tokens - charge, math.min(x.tokens, -x.limit.burst))
    beyond = math.max(beyond, charge - (before - x.tokens))
  elseif charge < 0 then
    x.tokens = math.max(x.tokens, math.min(x.tokens - charge, x.limit.burst - out))
  end
end

local function refill(b, now)
  local at, out, ended = b.at, b.out, b.leased and b.last_end <= now and b.last_end
  bucket_refill(b, now)
  debit(b, b.out)
  for _, t in ipairs(further) do
    t.at, t.out = at, out
    if ended then
      credit(t, math.max(at, ended))
      t.out = 0
    end
    credit(t, now)
    debit(t, b.out)
  end
  b.now, b.own, b.beyond = now, b.tokens, beyond
  b.tokens = least(b)
  b.before = b.tokens
end

local function save(b, now)
  local change = b.tokens - b.before
  local function settled(x, tokens)
    if looks then return math.max(0, x.limit.burst - b.out) end -- reset
    if change <= 0 then return tokens + change end
    return math.max(tokens, math.min(tokens + change, x.limit.burst - b.out))
  end
  b.tokens = settled(b, b.own)
  bucket_save(b, now)
  local parts, full = {}, time_to_full(b, now)
  for _, t in ipairs(further) do
    t.tokens, t.out, t.last_end = settled(t, t.tokens), b.out, b.last_end
    if looks then t.frac = 0 end
    parts[#parts + 1] = string.format('%.0f %.0f %.0f %.0f %.0f', t.limit.num, t.limit.den, t.limit.burst, t.tokens, t.frac)
    full = math.max(full, time_to_full(t, now))
  end
  redis.call('HSET', KEYS[1], 'z', table.concat(parts, ' '))
  redis.call('PEXPIRE', KEYS[1], int(ceildiv(full, 1000) + 1000))
  b.own = b.tokens
  b.tokens = least(b)
end

-- fits is how long until all tiers have that much if nobody asks: where leases leave
-- too little room, when those have ended.
local function fits(b, much)
  local longest = 0
  local function wait(x, tokens)
    local limit = x.limit
    local us = ceildiv(math.max(0, much - tokens) * limit.den, limit.num)
    local short = much - (limit.burst - b.out)
    if short > 0 and b.out > 0 then
      us = math.max(us, math.max(0, b.last_end - b.now) + ceildiv(short * limit.den, limit.num))
    end
    if b.live < b.peak then us = math.ceil(us * (b.peak / b.live)) end
    longest = math.max(longest, us)
  end
  wait(b, b.own)
  for _, t in ipairs(further) do wait(t, t.tokens) end
  return longest
end

local function complete(reply, b)
  local full = 0
  if looks then
    reply[#reply + 1] = int(b.tokens >= 1000000 and 0 or math.max(1, fits(b, 1000000)))
  else
    local spare = floordiv(floordiv(part_of(b, b.limit.burst), 1000000) * tonumber(ARGV[21]), 1000) * 1000000
    for i = 22, #ARGV, 3 do
      local granted, us = tonumber(reply[14 + (i - 19) / 3]), 0
      if granted < tonumber(ARGV[i + 1]) then
        local low = math.fmod(tonumber(ARGV[i + 2]), 4) >= 2
        us = math.max(1, fits(b, tonumber(ARGV[i]) + (low and spare or 0)))
      end
      reply[#reply + 1] = int(us)
    end
  end
  local tokens = b.tokens
  b.tokens = b.own
  full = time_to_full(b, b.now)
  b.tokens = tokens
  for _, t in ipairs(further) do
    t.out, t.last_end = b.out, b.last_end
    full = math.max(full, time_to_full(t, b.now))
  end
  reply[#reply + 1] = int(math.max(0, full))
  if not looks then
    reply[#reply + 1] = int(b.own)
    for _, t in ipairs(further) do reply[#reply + 1] = int(t.tokens) end
  end
  return bucket_complete(reply, b)
end
