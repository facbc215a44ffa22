-- bucket: the root token bucket of one key and the leases cut from it.
--
-- This text stands in front of every script of this package; the Go side joins
-- them, because Redis has no require. It declares local functions only.
--
-- State, one hash per key. Tokens are micro-tokens, times are microseconds on
-- the clock of Redis; every number is an integer below 2^53. An absent field
-- is 0. A cold key has l, t and s (and f where a rate does not divide evenly).
--   l       "format num den burst version": the format of the state, and the
--           limit (num/den micro-tokens per microsecond, burst in micro-tokens)
--   t f     tokens, and the remainder of the refill in units of 1/den
--   s       when t was computed
--   o p d   sums over the recorded leases: the larger of held and burst, rate,
--           demand
--   k q     how many are recorded, and the sum of their parts
--   w       until when a large request waits for the root to fill up, or a debt that
--           was booked is paid
--   g       until when the stored limit stands although another one was asked for
--   x       when every lease has ended: no lease counts beyond
--   e c     when the next sweep is due, and the cursor of a sweep under way
--   h<id>   a lease: "seq held rate burst end ttl demand part", where part is how
--           much of the limit its holder goes on with in an outage, in millionths
--
-- Invariant: t + o <= burst, and the root and the leases together gain no more
-- than the rate. Refill stops at burst - o and goes at rate - p; a grant moves
-- tokens from t to o, a return moves them back, spending and expiry lower o
-- alone. A lease with a rate counts with its whole burst from the beginning.

local FORMAT = tonumber(ARGV[1]) -- of messages and state that this text understands
local FASTEST = 4000000000 -- micro-tokens per us; no lease has a rate of a limit beyond
local LONGEST = 30000000 -- us; a lease that ends later was granted by a stepped clock

-- int writes a number in full: tostring and .. keep 14 digits.
local function int(x)
  return string.format('%.0f', x)
end

-- Division by way of fmod, which is exact where a / b may round up.
local function floordiv(a, b)
  return (a - math.fmod(a, b)) / b
end

local function ceildiv(a, b)
  local rest = math.fmod(a, b)
  if rest == 0 then return a / b end
  return (a - rest) / b + 1
end

-- clock is called once, before anything else: within a script TIME advances
-- on Redis < 7.2 and stands still later.
local function clock()
  local t = redis.call('TIME')
  return tonumber(t[1]) * 1000000 + tonumber(t[2])
end

-- limit_of reads num, den, burst and version, the arguments from ARGV[i] on.
local function limit_of(i)
  return {
    num = tonumber(ARGV[i]), den = tonumber(ARGV[i + 1]),
    burst = tonumber(ARGV[i + 2]), version = tonumber(ARGV[i + 3]),
  }
end

-- limit_text is the field l.
local function limit_text(limit)
  return string.format('%.0f %.0f %.0f %.0f %.0f', FORMAT, limit.num, limit.den, limit.burst, limit.version)
end

-- govern gives the limit that applies where another one than asked is stored.
-- The higher version wins, on a tie the smaller limit: the lower rate, then the
-- smaller burst. One that loses stands in for the winner when nobody has asked
-- for that for the time of grace, so that a limit that was changed everywhere, or
-- a version that was rolled back, is not kept for ever. The second value is until
-- when the stored limit stands unconfirmed.
local function govern(text, asked, stands, grace, now)
  local num, den, burst, version = string.match(text, '^%d+ (%d+) (%d+) (%d+) (%d+)$')
  if not num then return asked, 0 end
  local stored = { num = tonumber(num), den = tonumber(den), burst = tonumber(burst), version = tonumber(version) }
  local faster = stored.num / stored.den - asked.num / asked.den
  local wins = stored.version > asked.version or stored.version == asked.version and
    (faster < 0 or faster == 0 and stored.burst < asked.burst)
  if not wins then return asked, 0 end
  if stands == 0 or stands > now + LONGEST then return stored, grace and now + grace or stands end
  if now < stands then return stored, stands end
  return asked, 0
end

-- While some instances cannot reach this server they go on with their parts of
-- the limit. The root then gains, and holds, what the others' parts come to:
-- part_of an amount, and the time that some time is worth.
local function part_of(b, amount)
  if b.live >= b.peak then return amount end
  return math.floor(amount * (b.live / b.peak))
end

local function worth(b, elapsed)
  if b.live >= b.peak then return elapsed end
  return floordiv(math.min(elapsed, floordiv(9007199254740991, b.live)) * b.live, b.peak)
end

-- load reads the root and the lease of holder id. A missing key is a full bucket.
-- Of a newer format nothing but the format is read. b.limit is the limit that
-- applies. When it changes, the fraction of a micro-token is dropped, since its
-- unit was another one, and the debt is cut to the new burst.
-- live of peak instances can reach this server, of those that lately could: the
-- others go on with their parts of the limit, and that much less comes in here.
local function load(asked, now, id, grace, live, peak)
  local v = redis.call('HMGET', KEYS[1], 'l', 't', 'f', 's', 'o', 'p', 'd', 'x', 'e', 'c', 'w', 'h' .. id, 'g', 'k', 'q')
  local format = v[1] and tonumber(string.match(v[1], '^%d+')) or FORMAT
  if format > FORMAT then
    return { limit = asked, asked = asked, format = format, tokens = 0, out = 0, last_end = 0, rates = 0, demand = 0 }
  end
  local limit, stands = asked, 0
  if v[1] and v[1] ~= limit_text(asked) then
    limit, stands = govern(v[1], asked, tonumber(v[13] or 0), grace, now)
  end
  local b = {
    limit = limit, asked = asked, stands = stands, stands_text = v[13],
    text = v[1], format = format, frac_text = v[3],
    tokens = v[2] and math.max(tonumber(v[2]), -limit.burst) or limit.burst,
    frac = v[1] == limit_text(limit) and tonumber(v[3] or 0) or 0,
    at = v[2] and tonumber(v[4]) or now,
    out = tonumber(v[5] or 0), rates = tonumber(v[6] or 0), demand = tonumber(v[7] or 0),
    last_end = math.min(tonumber(v[8] or 0), now + LONGEST),
    sweep_at = tonumber(v[9] or 0), cursor = v[10] or '0',
    holders = tonumber(v[14] or 0), parts = tonumber(v[15] or 0),
    saving_till = tonumber(v[11] or 0), lease_text = v[12],
    live = live or 1, peak = peak or 1,
    leased = v[8] and true or false, -- the lease fields exist
    rebuild = false,                 -- nothing of the stored hash is worth keeping
    set = {}, gone = {},             -- fields that save writes and deletes besides the root's
  }
  if not v[2] then b.tokens = part_of(b, limit.burst) end
  -- While a debt is paid no lease may be cut for long; else for one lease at most.
  local longest = now + LONGEST
  if b.tokens < 0 then longest = longest + math.ceil(ceildiv(-b.tokens * limit.den, limit.num) * (b.peak / b.live)) end
  b.saving_till = math.min(b.saving_till, longest)
  return b
end

-- lent is what the rates of the leases were worth, rounded up.
local function lent(rates, elapsed)
  local rest = math.fmod(rates, 1000000)
  return (rates - rest) / 1000000 * elapsed + ceildiv(rest * elapsed, 1000000)
end

-- credit adds what the time from b.at to the instant t is worth, up to
-- burst - out, less what the leases earn by themselves. Time that runs backwards (a failover to an older clock) is worth
-- nothing, and the bucket goes on from there.
local function credit(b, t)
  local limit = b.limit
  local passed = math.max(0, t - b.at)
  local cap = math.max(0, part_of(b, limit.burst) - b.out)
  local room = cap - b.tokens
  b.at = t
  if room <= 0 then -- what it has beyond a part of the burst, it keeps
    b.tokens = math.min(b.tokens, math.max(0, limit.burst - b.out))
    b.frac = 0
    return
  end
  if b.rates == 0 and worth(b, passed) >= ceildiv(room * limit.den - b.frac, limit.num) then
    b.tokens = cap
    b.frac = 0
    return
  end
  -- Without rates the elapsed time is less than the time to full, which keeps
  -- the product exact. With rates it is shorter than a lease, and is taken in
  -- steps of a second, for which see FASTEST.
  while passed > 0 do
    local step = b.rates > 0 and math.min(passed, 1000000) or passed
    local x = worth(b, step) * limit.num + b.frac
    b.frac = math.fmod(x, limit.den)
    b.tokens = math.min(cap, b.tokens + math.max(0, (x - b.frac) / limit.den - lent(b.rates, step)))
    passed = passed - step
  end
end

-- refill brings the root to now with the rights that are recorded: a spent
-- token frees its room only when its holder says so. When the last lease has
-- ended, all rights are free from that instant on and the key is cold again.
local function refill(b, now)
  if b.at > now then b.sweep_at = now end -- the ends of leases lie too far ahead as well
  if b.leased and b.last_end <= now then
    credit(b, math.max(b.at, b.last_end))
    b.out, b.rates, b.demand, b.last_end, b.sweep_at, b.cursor = 0, 0, 0, 0, 0, '0'
    b.holders, b.parts = 0, 0
    b.leased, b.lease_text, b.rebuild = false, false, true
  end
  credit(b, now)
end

-- time_to_full: how long until the bucket would be full if nobody asked.
local function time_to_full(b, now)
  local limit = b.limit
  local full = ceildiv((limit.burst - b.tokens) * limit.den, limit.num)
  if b.live < b.peak then full = math.ceil(full * (b.peak / b.live)) end
  if b.last_end > now then
    -- Under a limit that was lowered more may be out than the bucket holds.
    local out = math.min(b.out, limit.burst)
    full = math.max(full, b.last_end - now + ceildiv(out * limit.den, limit.num))
    if b.rates > 0 then full = full + b.last_end - now end -- the root may stand still until then
  end
  return full
end

-- save is the only writer, and comes last: a script that fails before has
-- changed nothing. The key outlives the time to full, so that its expiry never
-- gives tokens away, and TTL and state are set together.
local function save(b, now)
  -- With nothing out the key is cold. It is written anew, because a hash that
  -- has once grown keeps the larger encoding. Who is recorded with a demand alone
  -- is forgotten.
  if b.out == 0 and b.rates == 0 then
    b.demand, b.last_end, b.sweep_at, b.cursor = 0, 0, 0, '0'
    b.holders, b.parts = 0, 0
    b.rebuild = b.rebuild or b.leased
    b.leased, b.set = false, {}
  end
  local set, gone = b.set, b.gone
  local function put(field, value)
    if value == '0' then
      gone[#gone + 1] = field
    else
      set[#set + 1] = field
      set[#set + 1] = value
    end
  end
  if b.rebuild then redis.call('UNLINK', KEYS[1]) end
  local text = limit_text(b.limit)
  if b.rebuild or b.text ~= text then put('l', text) end
  set[#set + 1] = 't'
  set[#set + 1] = int(b.tokens)
  put('s', int(b.at))
  if b.limit.den > 1 or b.frac_text then put('f', int(b.frac)) end
  if b.leased or b.last_end > 0 then
    put('o', int(b.out))
    put('p', int(b.rates))
    put('d', int(b.demand))
    put('k', int(b.holders))
    put('q', int(b.parts))
    put('x', int(b.last_end))
    put('e', int(b.sweep_at))
    put('c', b.cursor)
  end
  if b.stands > 0 or b.stands_text then put('g', int(b.stands)) end
  if b.saving_till > 0 then put('w', b.saving_till > now and int(b.saving_till) or '0') end
  redis.call('HSET', KEYS[1], unpack(set))
  if #gone > 0 and b.text and not b.rebuild then redis.call('HDEL', KEYS[1], unpack(gone)) end
  redis.call('PEXPIRE', KEYS[1], int(ceildiv(time_to_full(b, now), 1000) + 1000))
end

local OK, NEWER, STALE, OTHER = 0, 1, 2, 3

-- level is the part of a reply that every script gives: format, status, tokens,
-- rights out, time until the last lease ends, sum of rates, sum of demand. Where
-- another limit applies than was asked for, the status OK becomes OTHER.
local function level(b, now, status)
  if status == OK and b.limit ~= b.asked then status = OTHER end
  return {
    int(FORMAT), int(status), int(b.tokens), int(b.out),
    int(math.max(0, b.last_end - now)), int(b.rates), int(b.demand),
  }
end

-- complete ends a reply: with the limit that applies, if it is another one.
local function complete(reply, b)
  if b.limit ~= b.asked then
    local limit = b.limit
    for _, x in ipairs({ limit.num, limit.den, limit.burst, limit.version }) do reply[#reply + 1] = int(x) end
  end
  return reply
end
