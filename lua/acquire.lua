-- acquire: one message of a holder, and the answer to it.
--
-- Purpose: decides waiting requests exactly, replaces the holder's lease by
-- what the message says is really held, takes back what it returns, and grants
-- a lump on top while tokens are plentiful, or a part of the rate while they are
-- short.
--
-- KEYS[1]  the bucket (the only key touched)
-- ARGV[1]  format of the message (1)
-- ARGV[2]  id of the holder: random, per process start
-- ARGV[3]  sequence number of the message, growing per holder and key
-- ARGV[4]  rate, numerator    micro-tokens per microsecond
-- ARGV[5]  rate, denominator
-- ARGV[6]  burst              micro-tokens
-- ARGV[7]  version of the limit
-- ARGV[8]  ttl of the lease   us, at most LONGEST
-- ARGV[9]  kept: what the holder goes on holding, micro-tokens
-- ARGV[10] the largest rate that the holder may have, micro-tokens per second
--          (0: it wants none)
-- ARGV[11] the largest burst that goes with it, micro-tokens
-- ARGV[12] returned: removed at the holder before this was sent, micro-tokens
-- ARGV[13] spent from the lease since the last message, micro-tokens
-- ARGV[14] demand of the holder, micro-tokens per second
-- ARGV[15] want: lump wished for on top of kept, micro-tokens
-- ARGV[16] the least lump worth granting, micro-tokens
-- ARGV[17] charge: what to take from the bucket, micro-tokens, down to a debt of
--          one burst; negative: to give back, as far as there is room
-- ARGV[18] seen: the most that the bucket can hold by what the holder was last
--          told, micro-tokens (-1: it may be full, or nothing is known)
-- ARGV[19] instances that reach this server, and
-- ARGV[20] those that lately did (at least as many)
-- ARGV[21] reserve: the thousandths of what the bucket may hold that requests of
--          low priority, and the lump, leave alone
-- ARGV[22..] requests in order of arrival, three arguments each:
--            tokens (micro-tokens), count, and the sum of
--            1: they queue rather than leave
--            2: they are of low priority
--            4: they book ahead, down to a debt of one burst
--            8: what they are granted is held on lease, until it is spent there
--
-- Returns a flat array of integers as strings: the seven of level() (see
-- bucket.lua), then the sequence number, the tokens that the holder holds now,
-- its rate (micro-tokens per second) and the burst up to which it earns, the time
-- in us that it has (0: no lease), the part of the limit, in millionths, that it
-- goes on with if the server is lost meanwhile, what of the charge lies beyond the
-- debt of one burst, twice, and 1 more if the bucket was missing although it cannot
-- have been full, then for each triple of requests how many were granted.
-- Status 1: the state is of a newer format; 2: a later message of this holder
-- has been answered. Both change nothing. 3: all is done under another limit, whose
-- four numbers, as in ARGV[4..7], come last.
--
-- Atomicity: one script, all reads and checks before the one save. Cluster: one
-- key. Work: one HMGET, at most one HSCAN page of 32 (a small hash: all of it),
-- at most 16 leases swept.

local now = clock()
if #ARGV < 21 or math.fmod(#ARGV - 21, 3) ~= 0 then return redis.error_reply('ERR wrong number of arguments') end
for i = 3, #ARGV do
  if not tonumber(ARGV[i]) then return redis.error_reply('ERR an argument is not a number') end
end
local id, seq = ARGV[2], tonumber(ARGV[3])
local ttl = math.min(tonumber(ARGV[8]), LONGEST)
local kept, returned, spent = tonumber(ARGV[9]), tonumber(ARGV[12]), tonumber(ARGV[13])
local want, least = tonumber(ARGV[15]), tonumber(ARGV[16])
local charge, seen = tonumber(ARGV[17]), tonumber(ARGV[18])
local live, peak, reserve = tonumber(ARGV[19]), tonumber(ARGV[20]), tonumber(ARGV[21])

local function parse_lease(text)
  local s, lump, rate, burst, till, length, demand, part =
    string.match(text, '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
  if not s then return nil end
  return {
    seq = tonumber(s), lump = tonumber(lump), rate = tonumber(rate), burst = tonumber(burst),
    till = tonumber(till), ttl = tonumber(length), demand = tonumber(demand), part = tonumber(part),
  }
end

local function lease_text(l)
  return string.format('%.0f %.0f %.0f %.0f %.0f %.0f %.0f %.0f',
    l.seq, l.lump, l.rate, l.burst, l.till, l.ttl, l.demand, l.part)
end

local function drop(b, l)
  b.out = math.max(0, b.out - math.max(l.lump, l.burst))
  b.rates = math.max(0, b.rates - l.rate)
  b.demand = math.max(0, b.demand - l.demand)
  b.holders = math.max(0, b.holders - 1)
  b.parts = math.max(0, b.parts - l.part)
end

-- sweep forgets leases that ended without a word, at most 16 a call; until then
-- their rights count as out, which errs on the safe side. It rests for 100 ms at
-- least, because a hash of up to 512 fields is read as a whole. A lease that ends
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
    b.sweep_at = math.max(soonest, now + 100000)
  else
    b.sweep_at = now + 1000000
  end
end

local b = load(limit_of(4), now, id, ttl, live, peak)
if b.format > FORMAT then return level(b, now, NEWER) end
local limit = b.limit

-- A bucket that was emptied lately and is gone was lost: evicted, flushed, or
-- left behind by a failover. It goes on where the holder last saw it.
local lost = not b.text and seen >= 0 and seen < b.tokens
if lost then b.tokens = seen end

refill(b, now)

-- The lease that the message replaces. What the root does not know of, or
-- knows to have ended, is not held.
local most, former, had, surplus = 0, 0, 0, 0
if b.lease_text then
  local l = parse_lease(b.lease_text)
  if l then
    if l.seq >= seq then return level(b, now, STALE) end
    drop(b, l)
    had = l.rate
    local earned = had > 0 and lent(had, math.max(0, math.min(now, l.till) - l.till + l.ttl)) or 0
    if l.till > now then
      most, former = math.min(l.lump + earned, math.max(l.lump, l.burst)), math.min(l.till, now + l.ttl)
    end
    -- More than was ever granted or earned cannot have been spent rightly: it is
    -- charged. So is what a holder earned by a clock that runs fast.
    surplus = l.lump + earned - kept - returned - spent
    b.tokens = b.tokens + math.min(0, surplus)
    if b.tokens < -limit.burst then b.tokens = -limit.burst end
  end
end
-- Under a limit that was lowered there may be no room for all that is kept.
kept = math.min(kept, most, math.max(0, limit.burst - b.out))
returned = math.min(returned, most - kept)
b.out = b.out + kept
-- Nor for all that comes back.
b.tokens = math.max(b.tokens, math.min(b.tokens + returned, limit.burst - b.out))
local beyond = b.beyond or 0 -- of the charge
if charge > 0 then
  local before = b.tokens
  b.tokens = math.max(b.tokens - charge, -limit.burst)
  beyond = charge - (before - b.tokens)
elseif charge < 0 then
  b.tokens = math.max(b.tokens, math.min(b.tokens - charge, limit.burst - b.out))
end
sweep(b, 'h' .. id)

-- The last share of the bucket is kept for important requests. Where others meter
-- themselves the bucket is what they leave of it, and they keep such a share too.
local spare = 0
if reserve > 0 then
  local rights = part_of(b, limit.burst)
  if b.rates > 0 or had > 0 then rights = math.max(0, rights - b.out) end
  spare = floordiv(floordiv(rights, 1000000) * reserve, 1000) * 1000000
end

-- Requests, exactly as one bucket would decide them in this order. Behind one
-- that queues and does not fit nobody passes. Those of low priority and those that
-- book ahead say nothing about a shortage when they are refused.
local granted, refused, blocked, held = {}, false, false, 0
local booked, crowded = false, false
local largest, longing = 0, 0 -- of those refused, and of those among them that queue
for i = 22, #ARGV, 3 do
  local n, count, flags = tonumber(ARGV[i]), tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
  local queues, low = math.fmod(flags, 2) >= 1, math.fmod(flags, 4) >= 2
  local holds = math.fmod(flags, 16) >= 8
  local books = not holds and math.fmod(flags, 8) >= 4 -- what is held can be spent at once
  -- When it is due all that was booked comes at once, and what is on lease may as
  -- well. A debt is paid at the rate, which must be the root's alone: then it is
  -- known when.
  local fits = books and n <= limit.burst - b.out
  local least_left = (low and spare or 0) - (fits and b.rates == 0 and limit.burst or 0)
  local can = 0
  if not blocked then can = math.max(0, math.min(count, floordiv(b.tokens - least_left, n))) end
  if books and not fits then can = 0 end
  crowded = crowded or books and can < count and (not fits or b.rates > 0)
  b.tokens = b.tokens - can * n
  booked = booked or books and can > 0
  if holds then
    held = held + can * n
    b.out = b.out + can * n
  end
  if can < count and not low and not books then
    refused = true
    largest = math.max(largest, n)
    if queues then
      blocked = true
      longing = math.max(longing, n)
    end
  end
  granted[#granted + 1] = int(can)
end
kept = kept + held
-- What was booked falls due when the debt is paid. Until then no more is lent, and
-- nothing while somebody would book if less were on lease.
if booked and b.tokens < 0 then
  local paid = ceildiv(-b.tokens * limit.den, limit.num)
  if live < peak then paid = math.ceil(paid * (peak / live)) end
  b.saving_till = math.max(b.saving_till, now + paid)
end
if crowded then b.saving_till = math.max(b.saving_till, now + ttl) end
local free = b.tokens - spare -- for a lump

-- lend moves up to that much from the root to the holder, in whole tokens.
local function lend(most, atleast)
  local g = math.max(0, floordiv(math.min(want, most), 1000000) * 1000000)
  if g == 0 or g < atleast then return false end
  b.tokens = b.tokens - g
  b.out = b.out + g
  kept = kept + g
  return true
end

local demand, rate, burst = tonumber(ARGV[14]), 0, 0
local total = b.demand + demand -- of all holders
local top = part_of(b, floordiv(limit.num * 1000000, limit.den))
local saving = b.saving_till > now
local joins = false -- its demand counts from now on, so that the others make room

-- Plenty is when what is wanted is at most half of what is left: then a lump of
-- it is lent. While somebody is refused, every token goes to a request.
local done = want == 0 or saving or not refused and free / 2 >= want and lend(want, least)

-- The rate: where the root is short, each holder meters itself with a part of
-- the rate in proportion to its demand, not much above it, and as far as others
-- have left any, if that is worth two tokens per horizon, a fifth of the lease.
-- Its burst is the same part of the burst: at least three tokens, or all of it,
-- since a bucket of one or two overflows between arrivals. What it holds beyond
-- becomes lump: a smaller part neither destroys nor mints.
local most_rate = tonumber(ARGV[10])
local part, b_part = 0, 0
if want > 0 and most_rate > 0 and demand > 0 and limit.num <= FASTEST then
  part = math.floor(math.min(top * (demand / total), most_rate, demand * 1.5))
  -- Beside others, the root keeps room for one token, for those whose part is less.
  local shared = limit.burst - (demand < total and 1000000 or 0)
  b_part = math.floor(math.min(shared * (part / top), tonumber(ARGV[11])))
end
if longing > math.max(b_part, 1000000) then
  -- Somebody waits for more than a part will ever hold: until it has not asked for
  -- the length of a lease no new ones are cut, so that the root can fill up for it.
  b.saving_till = math.max(now + ttl, b.tokens < 0 and b.saving_till or 0)
elseif not done and part > 0 then
  -- Who has too little for a lease has its part at the root, if that will ever do.
  local at_root = b.rates > 0 and largest <= math.max(b_part, 1000000)
  if part * ttl >= 10 * 1000000 * 1000000 then
    -- The burst counts as out at once, so there must be room for it beside what
    -- the root has, which is not destroyed, and beside what others hold, who make
    -- room when they renew.
    local need = math.max(largest, math.min(3000000, limit.burst))
    local room = limit.burst - math.max(0, b.tokens)
    joins = math.min(b_part, room) >= need
    -- A debt is paid first, within a horizon: the root alone can pay it, and where
    -- clocks run fast it comes back with each report.
    local owed = math.min(top, math.ceil(math.max(0, -b.tokens) / ttl * 5 * 1000000))
    rate = math.max(0, math.min(part, top - b.rates - owed))
    burst = math.floor(math.min(b_part, room - b.out + kept) * (rate / part))
    if not joins or burst < need then
      rate, burst = 0, 0
      joins = joins or at_root
    else
      -- What the root still has goes along: half of it, or, where it is too little
      -- for somebody here, who now waits for this lease, all.
      lend(refused and b.tokens or free / 2, 0)
      done = true
    end
    b.out = b.out + math.max(0, burst - kept)
    b.rates = b.rates + rate
  else
    joins = at_root
  end
end

-- Neither plenty nor a rate: a part of what is left, if that is worth having and
-- nobody else holds any.
if not done and not refused and b.demand == 0 then lend(free / 2, least) end

local leased, outage_part = kept > 0 or joins, 0
if leased then
  -- What it goes on with in an outage follows its demand. Half of their equal parts
  -- is left to the instances that hold nothing here; everyone keeps an eighth of that.
  local idle = math.max(0, peak - b.holders - 1)
  local all = 1000000 - ceildiv(idle * 1000000, 2 * peak)
  local fair = math.max(math.floor(all * (demand / math.max(total, 1))), floordiv(62500, peak))
  outage_part = math.max(0, math.min(fair, all - b.parts))
  -- If the answer is lost, the holder goes by the end it was last told.
  -- What is held while somebody waits for a full root is not prolonged.
  local till = math.max(now + ttl, former)
  if saving and kept > 0 and rate == 0 and held == 0 then till = former end
  local l = {
    seq = seq, lump = kept, rate = rate, burst = burst, till = till, ttl = till - now,
    demand = demand, part = outage_part,
  }
  -- While the message travelled the holder earned nothing; it makes up for that
  -- when it has the answer, which must not be taken for a fast clock.
  if rate > 0 and had > 0 and former > 0 then
    l.lump = kept + math.max(0, math.min(surplus, lent(math.min(had, rate), math.floor(ttl / 20)), burst - kept))
  end
  ttl = math.min(ttl, till - now)
  b.demand = b.demand + l.demand
  b.holders = b.holders + 1
  b.parts = b.parts + outage_part
  b.last_end = math.max(b.last_end, till)
  if b.sweep_at == 0 or b.sweep_at > till then b.sweep_at = till end
  b.set[#b.set + 1] = 'h' .. id
  b.set[#b.set + 1] = lease_text(l)
elseif b.lease_text then
  b.gone[#b.gone + 1] = 'h' .. id
end
save(b, now)

local reply = level(b, now, OK)
reply[8] = int(seq)
reply[9] = int(kept)
reply[10] = int(rate)
reply[11] = int(burst)
reply[12] = int(leased and ttl or 0)
reply[13] = int(outage_part)
reply[14] = int(beyond * 2 + (lost and 1 or 0))
for i = 1, #granted do reply[14 + i] = granted[i] end
return complete(reply, b)
