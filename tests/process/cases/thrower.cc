/* SPDX-License-Identifier: Apache-2.0
 *
 * A shared library for exception.cc: throws, and calls back in between.
 */
#include <stdexcept>
#include <string>

namespace
{
struct Witness {
  explicit Witness(std::string &log) : log(log)
  {
  }
  ~Witness()
  {
    log += "w";
  }
  std::string &log;
};
} // namespace

void library_throw(int depth, std::string &log)
{
  Witness witness(log);
  if (depth == 0)
    throw std::out_of_range("from the library");
  library_throw(depth - 1, log);
}

void library_call(void (*function)(int), int value, std::string &log)
{
  Witness witness(log);
  function(value);
}
