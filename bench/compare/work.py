# SPDX-License-Identifier: Apache-2.0
"""work.py AMOUNT: what Python programs do all day, for bench/process: objects, dictionaries, strings, sorting, regular
expressions, arithmetic, parsing. Prints one line for each, always the same for the same AMOUNT."""
import json
import re
import sys

state = 1


def random(limit):
    global state
    state = (state * 1103515245 + 12345) % 2147483648
    return state // 65536 % limit


class Body:
    def __init__(self, i):
        self.place = [i * 1.5, i % 3 * 0.7, i % 2 * 0.3]
        self.speed = [0.0, 0.4 / i, 0.01 * i]
        self.mass = 39.5 if i == 1 else 0.01 * i


def orbit(steps):
    """Planets: floating point and lists."""
    bodies = [Body(i) for i in range(1, 6)]
    pairs = [(a, b) for i, a in enumerate(bodies) for b in bodies[i + 1:]]
    for _ in range(steps):
        for a, b in pairs:
            dx, dy, dz = (x - y for x, y in zip(a.place, b.place))
            force = 0.001 / (dx * dx + dy * dy + dz * dz + 0.01) ** 1.5
            for i, d in enumerate((dx, dy, dz)):
                a.speed[i] -= d * b.mass * force
                b.speed[i] += d * a.mass * force
        for a in bodies:
            a.place = [x + 0.001 * v for x, v in zip(a.place, a.speed)]
    return "%.9f %.9f" % (bodies[1].place[0], bodies[2].place[1])


def words(count):
    """Words: building strings, a regular expression, counting in a dictionary, sorting by a function."""
    lines = ["item%d %s" % (random(3000), chr(97 + random(26)) * (random(4) + 1)) for _ in range(count)]
    counts = {}
    for word in re.findall(r"[a-z]+\d*", "\n".join(lines)):
        counts[word] = counts.get(word, 0) + 1
    order = sorted(counts, key=lambda word: (-counts[word], word))
    return len(order), order[0], counts[order[0]]


class Square:
    def __init__(self, side):
        self.side = side

    def area(self):
        return self.side * self.side


class Circle(Square):
    def area(self):
        return 3 * super().area()


class Pair:
    def __init__(self, one, other):
        self.one, self.other = one, other

    def area(self):
        return (self.one.area() + self.other.area()) % 1000003


def dispatch(count):
    """Shapes: methods of objects of several classes."""
    shapes = []
    for i in range(200):
        kind = random(2 if i < 10 else 3)
        if kind == 2:
            shapes.append(Pair(shapes[random(i)], shapes[random(i)]))
        else:
            shapes.append((Square, Circle)[kind](random(9)))
    total = 0
    for i in range(count):
        total = (total + shapes[i % 200].area()) % 1000003
    return total


class Sums:
    """Sums in brackets: a parser by recursive descent over single characters."""

    def __init__(self, text):
        self.text, self.at = text + " ", 0

    def value(self):
        if self.text[self.at] == "(":
            self.at += 1
            inside = self.sum()
            self.at += 1
            return inside
        start = self.at
        while self.text[self.at].isdigit():
            self.at += 1
        return int(self.text[start:self.at])

    def product(self):
        result = self.value()
        while self.text[self.at] == "*":
            self.at += 1
            result *= self.value()
        return result

    def sum(self):
        result = self.product()
        while self.text[self.at] in "+-":
            sign = self.text[self.at]
            self.at += 1
            result = result + self.product() if sign == "+" else result - self.product()
        return result


def parse(count):
    text = "+".join("(%d*%d-(%d+%d))" % (random(100), random(10), random(50), random(7)) for _ in range(count))
    return Sums(text).sum()


def records(count):
    """JSON there and back."""
    rows = [{"name": "n%d" % random(900), "value": random(1000) / 8, "list": [random(9), None, True]}
            for _ in range(count)]
    back = json.loads(json.dumps(rows, sort_keys=True))
    best = {}
    for row in back:
        best[row["name"]] = max(best.get(row["name"], 0), row["value"])
    return len(best), sum(best.values())


def primes(limit):
    """Primes: a generator over a bytearray."""
    composite = bytearray(limit)

    def each():
        for i in range(2, limit):
            if not composite[i]:
                yield i
                for j in range(i * i, limit, i):
                    composite[j] = 1

    return sum(1 for _ in each())


def main(amount):
    print("orbit", orbit(6 * amount))
    print("words", *words(150 * amount))
    print("dispatch", dispatch(400 * amount))
    print("parse", parse(50 * amount))
    print("records", *records(50 * amount))
    print("primes", primes(1500 * amount))


main(int(sys.argv[1]))
