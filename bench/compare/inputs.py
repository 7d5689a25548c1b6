# SPDX-License-Identifier: Apache-2.0
"""The inputs of bench/process that are data: text for compressors, SQL, C. All come from one generator of numbers that
starts at the same place, so every run works on the same bytes (but for the system's headers in the C)."""
import struct
import subprocess


class Random:
    """A multiplicative generator, as the work.* programs have one: not Python's, which may change."""

    def __init__(self):
        self.state = 1

    def below(self, limit):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
        return (self.state >> 33) % limit

    def skewed(self, limit):
        """Small numbers are more frequent, as words in a language are."""
        return self.below(self.below(self.below(limit) + 1) + 1)


# ---- text ----

SYLLABLES = "an be con de er fi gra ho in jo ka lu mi no or pre qua ra sta tion un ve wi xe yo za ment th ly".split()


def vocabulary(random, count):
    return ["".join(SYLLABLES[random.below(len(SYLLABLES))] for _ in range(1 + random.below(4))) for _ in range(count)]


def prose(random, words, size):
    lines, length = [], 0
    while length < size:
        line = " ".join(words[random.skewed(len(words))] for _ in range(6 + random.below(8)))
        lines.append(line.capitalize() + "." if random.below(3) == 0 else line)
        length += len(lines[-1]) + 1
    return "\n".join(lines).encode() + b"\n"


def log(random, words, size):
    lines, length, now = [], 0, 1700000000
    while length < size:
        now += random.below(20)
        line = '%d host%02d %s[%d]: level=%s path="/%s/%s" bytes=%d' % (
            now, random.below(12), words[random.skewed(40)], 1000 + random.below(60),
            ("info", "warn", "debug")[random.below(3)], words[random.skewed(90)], words[random.skewed(900)],
            random.below(100000))
        lines.append(line)
        length += len(line) + 1
    return "\n".join(lines).encode() + b"\n"


def binary(random, size):
    """Records of a table: counters, small numbers, some noise."""
    def record(i):
        kind, place, weight = random.below(4), 7 * i - random.below(90), random.below(64) / 4
        return struct.pack("<IHHqd", i, random.skewed(500), kind, place, weight)

    return b"".join(record(i) for i in range(size // 24))


def text(size):
    """Half prose, a third log, the rest binary, in turns."""
    random = Random()
    words = vocabulary(random, 8000)
    turn = max(size // 8, 1)
    parts = []
    for _ in range(8):
        parts += [prose(random, words, turn // 2), log(random, words, turn // 3), binary(random, turn // 6)]
    return b"".join(parts)


def repeated(block, size):
    """Grows the text to `size`. What comes again is further back than gzip's and bzip2's windows reach."""
    return (block * (size // len(block) + 1))[:size]


# ---- SQL ----


def sql(amount):
    """Rows made by the engine, rows parsed one by one, joins, groups, sorting, patterns, updates, a window.
    Fractions are quarters, and averages are rounded: SQLite adds in long double, which valgrind has at 64 bits only."""
    random = Random()
    words = vocabulary(random, 400)
    rows = 250 * amount
    lines = [
        "CREATE TABLE item(id INTEGER PRIMARY KEY, word TEXT, number INTEGER, weight REAL);",
        "CREATE TABLE sale(id INTEGER PRIMARY KEY, item INTEGER, day INTEGER, count INTEGER, note TEXT);",
        "BEGIN;",
    ]
    for i in range(1, 10 * amount):
        lines.append("INSERT INTO item VALUES(%d, '%s-%s', %d, %.2f);" % (
            i, words[random.skewed(400)], words[random.below(400)], random.below(1000), random.below(20000) / 4))
    lines += [
        "INSERT INTO sale SELECT value, value * 7919 %% %d + 1, value * 31 %% 365, value * value %% 17, "
        "'note ' || (value * 271 %% 1013) FROM (WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n "
        "WHERE value < %d) SELECT value FROM n);" % (10 * amount - 1, rows),
        "CREATE INDEX sale_item ON sale(item);",
        "CREATE INDEX item_word ON item(word);",
        "COMMIT;",
        "SELECT day, sum(count), printf('%.3f', avg(count)), count(DISTINCT item) FROM sale GROUP BY day "
        "ORDER BY 2 DESC, 1 LIMIT 10;",
        "SELECT substr(word, 1, 2) AS start, sum(count * weight) FROM sale JOIN item ON item.id = sale.item "
        "GROUP BY start ORDER BY start LIMIT 10;",
        "SELECT count(*) FROM sale WHERE note LIKE '%7_2%' OR note GLOB 'note 1*5';",
        "UPDATE sale SET count = count + 1 WHERE item IN (SELECT id FROM item WHERE number % 7 = 0);",
        "SELECT max(total) FROM (SELECT sum(count) OVER (PARTITION BY item % 50 ORDER BY id) AS total FROM sale);",
        "SELECT note, count(*) FROM sale GROUP BY note ORDER BY 2 DESC, 1 LIMIT 5;",
        "DELETE FROM sale WHERE day BETWEEN 100 AND 130;",
        "SELECT count(*), sum(count), min(note), max(note) FROM sale;",
    ]
    return "\n".join(lines).encode() + b"\n"


# ---- C ----

HEADERS = "stdio stdlib string math ctype errno signal time stdint unistd fcntl sys/stat sys/socket pthread".split()


def function_list(random, n):
    return f"""
struct node{n} {{ struct node{n} *next, *before; int key; double weight; char name[{8 + random.below(40)}]; }};
static struct node{n} *list{n};
struct node{n} *insert{n}(int key, const char *name)
{{
  struct node{n} **place = &list{n}, *node;
  while (*place && (*place)->key < key) place = &(*place)->next;
  if (*place && (*place)->key == key) return *place;
  node = malloc(sizeof(*node));
  if (!node) return NULL;
  node->key = key; node->weight = key * {1 + random.below(90)} / {2 + random.below(9)}.0;
  strncpy(node->name, name, sizeof(node->name) - 1); node->name[sizeof(node->name) - 1] = 0;
  node->next = *place; node->before = NULL; if (*place) (*place)->before = node;
  return *place = node;
}}
double sum{n}(double limit) {{ double total = 0; for (struct node{n} *at = list{n}; at; at = at->next)
  if (at->weight < limit) total += at->weight; else if (at->key & {1 << random.below(6)}) total -= sqrt(at->weight);
  return total; }}
"""


def function_machine(random, n):
    cases = "\n".join(
        "    case %d: %s" % (i, [
            f"stack[at - 1] += {random.below(99)}; break;",
            f"if (at > 1) {{ stack[at - 2] ^= stack[at - 1] >> {random.below(31)}; at--; }} break;",
            f"if (at < 31) stack[at++] = code[i] * {3 + random.below(50)}u; break;",
            f"i += stack[at - 1] % {2 + random.below(7)}; break;",
            f"printf(\"%u {n}\\n\", stack[at - 1]); break;",
            f"return stack[at - 1] + {random.below(1000)};"][random.below(6)]) for i in range(8 + random.below(20)))
    return f"""
unsigned machine{n}(const unsigned char *code, size_t size)
{{
  unsigned stack[32] = {{{random.below(9)}}}, at = 1;
  for (size_t i = 0; i < size; i++)
    switch (code[i]) {{
{cases}
    default: if (isalpha(code[i])) stack[0] = stack[0] * 33 + tolower(code[i]);
    }}
  return stack[at - 1];
}}
"""


def function_matrix(random, n):
    size = 4 + random.below(60)
    return f"""
void matrix{n}(double (*restrict a)[{size}], double (*restrict b)[{size}], float *restrict out, int rows)
{{
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < {size}; j++) {{
      double total = 0;
      for (int k = 0; k < {size}; k++) total += a[i][k] * b[k][j] + {random.below(9)};
      if (total > {random.below(1000)}) out[i * {size} + j] = (float)total;
      else out[i * {size} + j] = (float)(fabs(total) + a[i][j]);
    }}
}}
"""


def function_text(random, n):
    mark = chr(97 + random.below(26))
    return f"""
int split{n}(char *line, char **fields, int limit)
{{
  int count = 0, depth = 0;
  for (char *at = line; *at && count < limit; at++) {{
    if (*at == '(') depth++; else if (*at == ')') depth--;
    if (depth == 0 && (*at == '{mark}' || isspace((unsigned char)*at))) {{ *at = 0; continue; }}
    if (at == line || !at[-1]) fields[count++] = at;
    if (strncmp(at, "{mark * 3}", 3) == 0) {{ memmove(at, at + 3, strlen(at + 3) + 1); errno = {random.below(30)}; }}
  }}
  qsort(fields, count, sizeof(*fields), (int (*)(const void *, const void *))strcmp);
  return count + (int)machine{n}((unsigned char *)line, strlen(line)) + (int)sum{n}(count);
}}
"""


def c(amount):
    random = Random()
    parts = ["#include <%s.h>\n" % name for name in HEADERS]
    for n in range(max(amount, 1)):
        parts += [function(random, n) for function in (function_list, function_machine, function_matrix, function_text)]
    return "".join(parts).encode()


def preprocessed(gcc, path, amount):
    """Writes PATH.c and, from it, PATH.i."""
    with open(path + ".c", "wb") as file:
        file.write(c(amount))
    subprocess.run([gcc, "-E", "-P", "-o", path + ".i", path + ".c"], check=True)
