-- window: what the scripts of the limits of n per period have in common.
--
-- This text stands behind bucket.lua in front of those scripts and declares
-- local functions only. Such a script is one per algorithm and knows all three
-- operations. It counts whole tokens of a limit of n = burst per
-- burst·den/num microseconds.
--
-- KEYS[1]     the key (the only one touched)
-- ARGV[1..]   as in acquire.lua, but
-- ARGV[10]    of what ARGV[17] gives back: until when the window lasts that it was
--             counted in, us from now (0: it was counted just now)
-- or, to look or to start anew:
-- ARGV[1..5]  as in peek.lua
-- ARGV[6]     'peek' or 'reset'
--
-- Returns what acquire.lua, peek.lua and reset.lua return, and besides: for each
-- run of requests how long in us until one more of them fits if nobody asks (0:
-- all were granted; of peek and reset: of one token), then how long until
-- all is free, then the other limit that applies, if there is one.

local TOKEN = 1000000

-- opening checks the arguments; it gives the operation, or nil.
local function opening()
  if #ARGV == 6 then
    for i = 2, 5 do
      if not tonumber(ARGV[i]) then return nil end
    end
    return (ARGV[6] == 'peek' or ARGV[6] == 'reset') and ARGV[6] or nil
  end
  if #ARGV < 21 or math.fmod(#ARGV - 21, 3) ~= 0 then return nil end
  for i = 3, #ARGV do
    if not tonumber(ARGV[i]) then return nil end
  end
  return 'acquire'
end

-- whole is an argument in tokens, rounded up.
local function whole(i)
  local x = tonumber(ARGV[i])
  if x < 0 then return -floordiv(-x, TOKEN) end
  return ceildiv(x, TOKEN)
end

-- lower brings an amount within the debt of one limit that the answer may tell.
local function lower(left, n)
  return math.max(left, -n)
end

-- owed is what a message charges: what was spent without asking, and what had been
-- counted where nothing is stored, although by what the holder last saw something
-- must be (the key was evicted or flushed, or a failover left it behind).
local function owed(w, stored)
  local charge, seen = whole(17), tonumber(ARGV[18])
  if not stored and seen >= 0 and floordiv(seen, TOKEN) < w.n then
    w.lost = 1
    charge = charge + w.n - floordiv(seen, TOKEN)
  end
  return charge
end

-- decide gives how many of each run of requests fit into what is left, in their
-- order, and what those need of which some do not. Behind one that queues and does
-- not fit nobody passes. Those of low priority need the reserve besides, but hold
-- nobody back: the fourth value is whether others were refused, the last one is
-- what is to be held on lease.
local function decide(w, left)
  local granted, missing, blocked, refused, held = {}, {}, false, false, 0
  w.spare = floordiv(w.n * tonumber(ARGV[21]), 1000)
  for i = 22, #ARGV, 3 do
    local n, count, flags = whole(i), tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
    local low = math.fmod(flags, 4) >= 2
    local spare = low and w.spare or 0
    local can = 0
    if not blocked then can = math.max(0, math.min(count, floordiv(left - spare, n))) end
    left = left - can * n
    if math.fmod(flags, 16) >= 8 then held = held + can * n end
    granted[#granted + 1] = can
    missing[#granted] = can < count and n + spare or 0
    if can < count and not low then
      refused = true
      if math.fmod(flags, 2) == 1 then blocked = true end
    end
  end
  return left, granted, missing, refused, held
end

-- head is the beginning of every reply.
local function head(w, status)
  if status == OK and w.limit ~= w.asked then status = OTHER end
  local reply = { FORMAT, status, w.left * TOKEN, w.out * TOKEN, w.out > 0 and w.lease or 0, 0, 0 }
  for i = 1, #reply do reply[i] = int(reply[i]) end
  return reply
end

-- told ends the reply to a message. w.fits(n) is how long until n tokens fit.
local function told(w, seq, lump, granted, missing)
  local reply = head(w, OK)
  for _, x in ipairs({ seq, lump * TOKEN, 0, 0, lump > 0 and w.lease or 0, 0, w.beyond * TOKEN * 2 + w.lost }) do reply[#reply + 1] = int(x) end
  for i = 1, #granted do reply[#reply + 1] = int(granted[i]) end
  for i = 1, #granted do reply[#reply + 1] = int(missing[i] > 0 and math.max(1, w.fits(missing[i])) or 0) end
  reply[#reply + 1] = int(w.reset)
  return complete(reply, w)
end

-- seen is the reply of peek and reset.
local function seen(w)
  local reply = head(w, OK)
  reply[#reply + 1] = int(w.left >= 1 and 0 or math.max(1, w.fits(1)))
  reply[#reply + 1] = int(w.reset)
  return complete(reply, w)
end

-- begin gives what all have: the limit that applies where text is stored.
local function begin(text, stands, op, now)
  local asked = limit_of(op == 'acquire' and 4 or 2)
  local w = { asked = asked, limit = asked, stands = 0, left = 0, out = 0, lease = 0, reset = 0, lost = 0, beyond = 0 }
  if text then
    w.newer = tonumber(string.match(text, '^%d+')) > FORMAT
    if not w.newer and text ~= limit_text(asked) then
      local grace = op == 'acquire' and math.min(tonumber(ARGV[8]), LONGEST) or nil
      w.limit, w.stands = govern(text, asked, tonumber(stands or 0), grace, now)
    end
  end
  w.n = floordiv(w.limit.burst, TOKEN)
  local live, peak = tonumber(ARGV[19] or 1), tonumber(ARGV[20] or 1)
  if live < peak then w.n = math.max(1, math.floor(w.n * (live / peak))) end
  w.period = ceildiv(w.limit.burst * w.limit.den, w.limit.num)
  return w
end
