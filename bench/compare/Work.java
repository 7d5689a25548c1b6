// SPDX-License-Identifier: Apache-2.0
// Work AMOUNT: what Java programs do all day, for bench/process: collections, strings, interfaces, streams, arrays. Prints one
// line for each, always the same for the same AMOUNT.
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

class Work {
  private static int state = 1;

  private static int random(int limit) {
    state = (state * 1103515245 + 12345) & 0x7fffffff;
    return (state >>> 16) % limit;
  }

  // Words: building strings, counting in a map, sorting with a comparator.
  private static String words(int count) {
    StringBuilder text = new StringBuilder();
    Map<String, Integer> counts = new HashMap<>();
    for (int i = 0; i < count; i++)
      text.append("item").append(random(3000)).append(' ').append(String.valueOf((char)('a' + random(26))).repeat(random(4) + 1)).append('\n');
    for (String word : text.toString().split("\\s+")) counts.merge(word, 1, Integer::sum);
    List<String> order = new ArrayList<>(counts.keySet());
    order.sort(Comparator.<String>comparingInt(word -> -counts.get(word)).thenComparing(Comparator.naturalOrder()));
    return order.size() + " " + order.get(0) + " " + counts.get(order.get(0));
  }

  // Shapes: calls of an interface with three implementations.
  private interface Shape {
    int area();
  }

  private static int dispatch(int count) {
    List<Shape> shapes = new ArrayList<>();
    for (int i = 0; i < 200; i++) {
      int kind = i < 10 ? random(2) : random(3), size = random(9);
      Shape one = kind == 2 ? shapes.get(random(i)) : null, other = kind == 2 ? shapes.get(random(i)) : null;
      shapes.add(kind == 0 ? () -> size * size : kind == 1 ? () -> 3 * size * size : () -> one.area() + other.area());
    }
    int total = 0;
    for (int i = 0; i < count; i++) total = (total + shapes.get(i % 200).area()) % 1000003;
    return total;
  }

  // Groups: a stream over numbers, into a map.
  private static int groups(int count) {
    Map<Integer, Long> groups = IntStream.range(0, count).mapToObj(i -> i * 7919 % 1013).filter(i -> i % 3 != 0)
      .collect(Collectors.groupingBy(i -> i % 97, Collectors.counting()));
    return groups.hashCode();
  }

  // Primes: a loop over an array.
  private static int sieve(int limit) {
    boolean[] isComposite = new boolean[limit + 1];
    int count = 0;
    for (int i = 2; i <= limit; i++) {
      if (isComposite[i]) continue;
      count++;
      for (long j = (long)i * i; j <= limit; j += i) isComposite[(int)j] = true;
    }
    return count;
  }

  public static void main(String[] arguments) {
    int amount = Integer.parseInt(arguments[0]);
    System.out.println("words " + words(100 * amount));
    System.out.println("dispatch " + dispatch(10000 * amount));
    System.out.println("groups " + groups(500 * amount));
    System.out.println("sieve " + sieve(8000 * amount));
  }
}
