-- SPDX-License-Identifier: Apache-2.0
-- work.lua AMOUNT: what Lua programs do all day, for bench/process: tables, strings, sorting, dispatch, arithmetic,
-- parsing. Prints one line for each, always the same for the same AMOUNT.
local amount = tonumber(arg[1])
local state = 1

local function random(limit)
  state = (state * 1103515245 + 12345) % 2147483648
  return state // 65536 % limit
end

-- Planets: floating point and fields of tables.
local function orbit(steps)
  local bodies = {}
  for i = 1, 5 do
    bodies[i] = {x = i * 1.5, y = i % 3 * 0.7, z = i % 2 * 0.3, vx = 0, vy = 0.4 / i, vz = 0.01 * i}
    bodies[i].mass = i == 1 and 39.5 or 0.01 * i
  end
  for _ = 1, steps do
    for i = 1, #bodies do
      local a = bodies[i]
      for j = i + 1, #bodies do
        local b = bodies[j]
        local dx, dy, dz = a.x - b.x, a.y - b.y, a.z - b.z
        local square = dx * dx + dy * dy + dz * dz + 0.01
        local force = 0.001 / (square * square ^ 0.5)
        a.vx, a.vy, a.vz = a.vx - dx * b.mass * force, a.vy - dy * b.mass * force, a.vz - dz * b.mass * force
        b.vx, b.vy, b.vz = b.vx + dx * a.mass * force, b.vy + dy * a.mass * force, b.vz + dz * a.mass * force
      end
    end
    for _, a in ipairs(bodies) do
      a.x, a.y, a.z = a.x + 0.001 * a.vx, a.y + 0.001 * a.vy, a.z + 0.001 * a.vz
    end
  end
  return string.format("%.9f %.9f", bodies[2].x, bodies[3].y)
end

-- Words: building strings, counting in a table, sorting with a function.
local function words(count)
  local lines, counts, order = {}, {}, {}
  for i = 1, count do
    lines[i] = "item" .. random(3000) .. " " .. string.rep(string.char(97 + random(26)), random(4) + 1)
  end
  for word in table.concat(lines, "\n"):gmatch("%S+") do
    if not counts[word] then order[#order + 1] = word end
    counts[word] = (counts[word] or 0) + 1
  end
  table.sort(order, function(a, b) return counts[a] > counts[b] or counts[a] == counts[b] and a < b end)
  return #order .. " " .. order[1] .. " " .. counts[order[1]]
end

-- Shapes: methods found through metatables.
local function dispatch(count)
  local square, circle, pair = {}, {}, {}
  square.__index, circle.__index, pair.__index = square, circle, pair
  function square:area() return self.side * self.side end
  function circle:area() return 3 * self.radius * self.radius end
  function pair:area() return self.one:area() + self.other:area() end
  local shapes, total = {}, 0
  for i = 1, 200 do
    local kind = i < 10 and random(2) or random(3)
    if kind == 0 then shapes[i] = setmetatable({side = random(9)}, square)
    elseif kind == 1 then shapes[i] = setmetatable({radius = random(9)}, circle)
    else shapes[i] = setmetatable({one = shapes[random(i - 1) + 1], other = shapes[random(i - 1) + 1]}, pair) end
  end
  for i = 1, count do total = (total + shapes[i % 200 + 1]:area()) % 1000003 end
  return total
end

-- Sums in brackets: a parser by recursive descent over single characters.
local function parse(count)
  local parts = {}
  for i = 1, count do
    parts[i] = "(" .. random(100) .. "*" .. random(10) .. "-(" .. random(50) .. "+" .. random(7) .. "))"
  end
  local text, at = table.concat(parts, "+"), 1
  local sum
  local function value()
    if text:byte(at) == 40 then
      at = at + 1
      local inside = sum()
      at = at + 1
      return inside
    end
    local number = 0
    while true do
      local digit = text:byte(at)
      if not digit or digit < 48 or digit > 57 then return number end
      number, at = number * 10 + digit - 48, at + 1
    end
  end
  local function product()
    local result = value()
    while text:byte(at) == 42 do
      at = at + 1
      result = result * value()
    end
    return result
  end
  function sum()
    local result = product()
    while true do
      local sign = text:byte(at)
      if sign ~= 43 and sign ~= 45 then return result end
      at = at + 1
      result = sign == 43 and result + product() or result - product()
    end
  end
  return sum()
end

-- Primes: a loop over an array.
local function sieve(limit)
  local is_composite, count = {}, 0
  for i = 2, limit do
    if not is_composite[i] then
      count = count + 1
      for j = i * i, limit, i do is_composite[j] = true end
    end
  end
  return count
end

print("orbit", orbit(30 * amount))
print("words", words(200 * amount))
print("dispatch", dispatch(1500 * amount))
print("parse", parse(150 * amount))
print("sieve", sieve(2500 * amount))
