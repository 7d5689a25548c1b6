-- SPDX-License-Identifier: Apache-2.0
-- Four coroutines, tables and errors, compiled by LuaJIT, which has no threads of its own.
local function work(number)
  local map, sum = {}, 0
  for i = 0, 199999 do
    map[i % 1000 * 31 + number] = 'value ' .. i % 100
    local good, error = pcall(function() if i % 7 == 0 then error('seven') end return i end)
    sum = (sum + (good and #map[i % 1000 * 31 + number] or #tostring(error))) % 1000003
    if i % 5000 == 0 then coroutine.yield(i) end
  end
  return sum
end
local routines, left = {}, 4
for i = 1, 4 do routines[i] = coroutine.create(work) end
while left > 0 do
  for i = 1, 4 do
    if coroutine.status(routines[i]) ~= 'dead' then
      local _, value = coroutine.resume(routines[i], i)
      if coroutine.status(routines[i]) == 'dead' then left = left - 1 print('sum ' .. value) end
    end
  end
end
