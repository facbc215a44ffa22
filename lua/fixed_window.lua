-- fixed_window: n tokens per window, which begins with its first request.
--
-- Purpose: decides waiting requests exactly, and lends lumps that end with their
-- window. Between two windows up to 2n may pass at once, by definition.
--
-- KEYS, ARGV and replies: see window.lua. The reply's time of a lease ends with
-- the window at the latest.
--
-- State, one hash: l the limit (see bucket.lua), s when the window began, c what
-- was counted in it (tokens, those on lease included), o what is on lease of that, g
-- until when the limit stands, h<id> a lease: "seq held". All of it belongs to
-- the one window: what a holder of the last window says is of no account.
--
-- Atomicity: one script, reads before the writes. Cluster: one key. Work: one
-- HMGET, one HSET. The key lives until the window ends and a second more; each
-- message sets that anew to the same instant.

local now = clock()
local op = opening()
if not op then return redis.error_reply('ERR wrong arguments') end
local id = op == 'acquire' and ARGV[2] or ''

local v = redis.call('HMGET', KEYS[1], 'l', 's', 'c', 'o', 'g', 'h' .. id)
local w = begin(v[1], v[5], op, now)
if w.newer then return head(w, NEWER) end

-- A window that begins in the future began before the clock stepped back.
local start = v[2] and math.min(tonumber(v[2]), now) or now
local count, out, lease = tonumber(v[3] or 0), tonumber(v[4] or 0), v[6]
local anew = v[1] and (not v[2] or now >= start + w.period)
if anew then start, count, out, lease = now, 0, 0, nil end

local held = 0
local function measure()
  w.left = lower(w.n - count, w.n)
  w.out = out
  w.reset = count > 0 and start + w.period - now or 0
  w.fits = function(n) return n <= w.left and 0 or w.reset end
end

local function save()
  if anew or count == 0 and v[1] then redis.call('UNLINK', KEYS[1]) end
  if count == 0 then return end
  local set = { 'l', limit_text(w.limit), 's', int(start), 'c', int(count) }
  local function put(field, value, before)
    if value ~= '0' or before and not anew then
      set[#set + 1] = field
      set[#set + 1] = value
    end
  end
  put('o', int(out), v[4])
  put('g', int(w.stands), v[5])
  if held > 0 then put('h' .. id, ARGV[3] .. ' ' .. int(held), lease) end
  redis.call('HSET', KEYS[1], unpack(set))
  if lease and held == 0 then redis.call('HDEL', KEYS[1], 'h' .. id) end
  redis.call('PEXPIRE', KEYS[1], int(ceildiv(start + w.period - now, 1000) + 1000))
end

if op ~= 'acquire' then
  if op == 'reset' then
    count = out
    save()
  end
  measure()
  w.lease = w.reset
  return seen(w)
end

-- What the holder has of this window: what is not known of is not held.
local seq, had = tonumber(ARGV[3]), 0
if lease then
  local s, lump = string.match(lease, '^(%d+) (%d+)$')
  if s then
    if tonumber(s) >= seq then
      measure()
      return head(w, STALE)
    end
    had = tonumber(lump)
    local kept, returned = whole(9), whole(12)
    -- More than was ever granted cannot have been spent rightly: it is charged.
    local excess = math.max(0, kept + returned + whole(13) - had)
    held = math.min(kept, had)
    count = math.max(0, count - math.min(returned, had - held)) + excess
  end
end
out = math.max(0, out - had) + held

-- A charge is made as far as one limit of debt, and given back as far as what is
-- on lease.
local charge = owed(w, v[1])
if charge > 0 then
  local before = count
  count = math.max(count, math.min(count + charge, 2 * w.n))
  w.beyond = charge - (count - before)
end
local till = tonumber(ARGV[10]) -- what was counted in an earlier window is gone with it
if charge < 0 and (till == 0 or start + w.period - now <= till) then
  count = math.max(math.min(count, out), count + charge)
end

local left, granted, missing, refused, hold = decide(w, w.n - count)
count = w.n - left
held, out = held + hold, out + hold

-- A lump is lent as long as everybody was served: at most half of what is left, and
-- less where the window ends before the time is over for which it was wished (a
-- fifth of the lease). Just before the end a lease would be over on arrival.
local ends = start + w.period - now
local ttl = math.min(tonumber(ARGV[8]), LONGEST)
if whole(15) > 0 and not refused and ends * 20 >= ttl then
  local lump = math.min(whole(15), math.floor(whole(15) * (ends * 5 / ttl)), math.floor((left - w.spare) / 2))
  if lump > 0 and lump >= whole(16) then
    held, out, count = held + lump, out + lump, count + lump
  end
end
measure()
w.lease = math.min(ttl, ends)
save()
return told(w, seq, held, granted, missing)
