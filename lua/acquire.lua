-- acquire: one message of a holder, and the answer to it.
--
-- Purpose: decides waiting requests exactly, replaces the holder's lease by
-- what the message says is really held, takes back what it returns, and grants
-- a lump on top while tokens are plentiful.
--
-- KEYS[1]  the bucket (the only key touched)
-- ARGV[1]  format of the message (1)
-- ARGV[2]  id of the holder: random, per process start
-- ARGV[3]  sequence number of the message, growing per holder and key
-- ARGV[4]  rate, numerator    micro-tokens per microsecond
-- ARGV[5]  rate, denominator
-- ARGV[6]  burst              micro-tokens
-- ARGV[7]  version of the limit
-- ARGV[8]  ttl of the lease   us
-- ARGV[9]  kept: lump that the holder goes on holding, micro-tokens
-- ARGV[10] kept: rate of a rate lease, micro-tokens per second (0: none)
-- ARGV[11] kept: burst of a rate lease, micro-tokens (0: none)
-- ARGV[12] returned: removed at the holder before this was sent, micro-tokens
-- ARGV[13] spent from the lease since the last answer, micro-tokens
-- ARGV[14] demand of the holder, micro-tokens per second
-- ARGV[15] want: lump wished for on top of kept, micro-tokens
-- ARGV[16] the least lump worth granting, micro-tokens
-- ARGV[17..] requests in order of arrival, three arguments each:
--            tokens (micro-tokens), count, 1 if they queue rather than leave
--
-- Returns a flat array of integers as strings: the seven of level() (see
-- bucket.lua), then sequence number, lump, rate and burst of the lease as now
-- recorded, its remaining time in us (0: no lease), then for each triple of
-- requests how many were granted.
-- Status 1: the state is of a newer format; 2: a later message of this holder
-- has been answered. Both change nothing.
--
-- Atomicity: one script, all reads and checks before the one save. Cluster: one
-- key. Work: one HMGET, at most one HSCAN page, at most 16 leases swept.

local now = clock()
local id, seq = ARGV[2], tonumber(ARGV[3])
local limit = limit_of(4)
local ttl, kept, returned, spent = tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[12]), tonumber(ARGV[13])
local want, least = tonumber(ARGV[15]), tonumber(ARGV[16])

local function parse_lease(text)
  local s, lump, rate, burst, till, length, demand =
    string.match(text, '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
  if not s then return nil end
  return {
    seq = tonumber(s), lump = tonumber(lump), rate = tonumber(rate), burst = tonumber(burst),
    till = tonumber(till), ttl = tonumber(length), demand = tonumber(demand),
  }
end

local function lease_text(l)
  return string.format('%.0f %.0f %.0f %.0f %.0f %.0f %.0f', l.seq, l.lump, l.rate, l.burst, l.till, l.ttl, l.demand)
end

local function drop(b, l)
  b.out = math.max(0, b.out - l.lump - l.burst)
  b.rates = math.max(0, b.rates - l.rate)
  b.demand = math.max(0, b.demand - l.demand)
end

-- sweep forgets leases that ended without a word, at most 16 a call; until then
-- their rights count as out, which errs on the safe side. A lease that ends
-- more than its own length ahead was granted before the clock stepped back.
local function sweep(b, own)
  if not b.leased or (b.sweep_at > now and b.sweep_at <= now + LONGEST) then return end
  local page = redis.call('HSCAN', KEYS[1], b.cursor, 'COUNT', '32')
  local whole = b.cursor == '0' and page[1] == '0'
  local swept, soonest = 0, now + LONGEST
  for i = 1, #page[2], 2 do
    local field = page[2][i]
    if string.sub(field, 1, 1) == 'h' and field ~= own and swept < 16 then
      local l = parse_lease(page[2][i + 1])
      if not l or l.till <= now then
        if l then drop(b, l) end
        b.gone[#b.gone + 1] = field
        swept = swept + 1
      else
        if l.till > now + l.ttl then
          l.till = now + l.ttl
          b.set[#b.set + 1] = field
          b.set[#b.set + 1] = lease_text(l)
        end
        soonest = math.min(soonest, l.till)
      end
    end
  end
  b.cursor = page[1]
  if swept == 16 or page[1] ~= '0' then
    b.sweep_at = now -- goes on with the next message
  elseif whole then
    b.sweep_at = soonest
  else
    b.sweep_at = now + 1000000
  end
end

local b = load(limit, now, id)
if b.format > FORMAT then return level(b, now, NEWER) end

refill(b, limit, now)

-- The lease that the message replaces. What the root does not know of, or
-- knows to have ended, is not held.
local lump = 0
if b.lease_text then
  local l = parse_lease(b.lease_text)
  if l then
    if l.seq >= seq then return level(b, now, STALE) end
    drop(b, l)
    if l.till > now then lump = l.lump end
    -- More than was ever granted cannot have been spent rightly: it is charged.
    b.tokens = b.tokens - math.max(0, kept + returned + spent - l.lump)
    if b.tokens < -limit.burst then b.tokens = -limit.burst end
  end
end
kept = math.min(kept, lump)
returned = math.min(returned, lump - kept)
b.out = b.out + kept
b.tokens = b.tokens + returned
sweep(b, 'h' .. id)

-- Requests, exactly as one bucket would decide them in this order. Behind one
-- that queues and does not fit nobody passes.
local granted, refused, blocked = {}, false, false
for i = 17, #ARGV, 3 do
  local n, count = tonumber(ARGV[i]), tonumber(ARGV[i + 1])
  local can = 0
  if not blocked then can = math.max(0, math.min(count, floordiv(b.tokens, n))) end
  b.tokens = b.tokens - can * n
  if can < count then
    refused = true
    if ARGV[i + 2] == '1' then blocked = true end
  end
  granted[#granted + 1] = int(can)
end

-- The lump: at most half of what is left, whole tokens, and only while nobody
-- is refused, so that near exhaustion every token goes to a request.
if want > 0 and not refused then
  local g = floordiv(math.min(want, b.tokens / 2), 1000000) * 1000000
  if g >= least and g > 0 then
    b.tokens = b.tokens - g
    b.out = b.out + g
    kept = kept + g
  end
end

local till = 0
if kept > 0 then
  local l = { seq = seq, lump = kept, rate = 0, burst = 0, till = now + ttl, ttl = ttl, demand = tonumber(ARGV[14]) }
  till = l.till
  b.demand = b.demand + l.demand
  b.last_end = math.max(b.last_end, till)
  if b.sweep_at == 0 or b.sweep_at > till then b.sweep_at = till end
  b.set[#b.set + 1] = 'h' .. id
  b.set[#b.set + 1] = lease_text(l)
elseif b.lease_text then
  b.gone[#b.gone + 1] = 'h' .. id
end
save(b, limit, now)

local reply = level(b, now, OK)
reply[8] = int(seq)
reply[9] = int(kept)
reply[10] = '0'
reply[11] = '0'
reply[12] = int(kept > 0 and till - now or 0)
for i = 1, #granted do reply[12 + i] = granted[i] end
return reply
