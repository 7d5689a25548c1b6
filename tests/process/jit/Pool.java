// SPDX-License-Identifier: Apache-2.0
// A pool of four threads, maps and exceptions: the JVM compiles and patches code while all of them run it.
import java.util.*;
import java.util.concurrent.*;

public class Pool {
  static int work(int number) {
    Map<Integer, String> map = new HashMap<>();
    int sum = 0;
    for (int i = 0; i < 3000; i++) {
      map.put(i * 31 + number, "value " + i);
      try {
        if (i % 7 == 0)
          throw new IllegalStateException("seven " + i);
        sum += map.get(i * 31 + number).length();
      } catch (IllegalStateException e) {
        sum += e.getMessage().hashCode() & 15;
      }
    }
    for (Map.Entry<Integer, String> entry : map.entrySet())
      sum += entry.getKey() ^ entry.getValue().hashCode();
    return sum;
  }

  public static void main(String[] arguments) throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(4);
    List<Future<Integer>> results = new ArrayList<>();
    for (int i = 0; i < 40; i++) {
      int number = i;
      results.add(pool.submit(() -> work(number)));
    }
    long sum = 0;
    for (Future<Integer> result : results)
      sum += result.get();
    pool.shutdown();
    System.out.println("sum " + sum);
  }
}
