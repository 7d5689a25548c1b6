# SPDX-License-Identifier: Apache-2.0
# Four threads, tables and exceptions, compiled by PyPy.
import threading
sums = [0] * 4
def work(number):
    table, total = {}, 0
    for i in range(20000):
        table[i * 31 + number] = 'value %d' % i
        try:
            if i % 7 == 0:
                raise ValueError(i)
            total += len(table[i * 31 + number])
        except ValueError as error:
            total += error.args[0] & 15
    sums[number] = total
threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print('sums', sums)
