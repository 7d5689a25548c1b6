// SPDX-License-Identifier: Apache-2.0
// An HTTP server for the tests of lbr record -p and lbr run -p: a pool of threads, exceptions, a garbage collector and a
// compiler that works while requests come. /work/N answers with a number that the client knows, /count with the number
// of requests so far.
import com.sun.net.httpserver.*;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.*;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicLong;

public class Server {
  static final AtomicLong count = new AtomicLong();

  static int work(int number) {
    Map<Integer, String> texts = new HashMap<>();
    int hash = number;
    for (int i = 0; i < 1000; i++) {
      hash = (hash ^ i) * 16777619;
      try {
        if (i % 100 == 99)
          throw new IllegalStateException("number " + i);
        if (i % 10 == 0)
          texts.put(hash, "item " + hash);
      } catch (IllegalStateException e) {
        if (!e.getMessage().equals("number " + i))
          throw new AssertionError(e.getMessage());
      }
    }
    for (Map.Entry<Integer, String> entry : texts.entrySet())
      if (!entry.getValue().equals("item " + entry.getKey()))
        throw new AssertionError(entry.getValue());
    return hash;
  }

  static void answer(HttpExchange exchange, String text) throws IOException {
    byte[] bytes = (text + "\n").getBytes();
    exchange.sendResponseHeaders(200, bytes.length);
    exchange.getResponseBody().write(bytes);
    exchange.close();
  }

  public static void main(String[] arguments) throws Exception {
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[0])), 0);
    server.createContext("/count", exchange -> answer(exchange, Long.toString(count.get())));
    server.createContext("/work/", exchange -> {
      count.incrementAndGet();
      String path = exchange.getRequestURI().getPath();
      answer(exchange, String.format("%08x", work(Integer.parseInt(path.substring(6)))));
    });
    server.setExecutor(Executors.newFixedThreadPool(4));
    server.start();
  }
}
