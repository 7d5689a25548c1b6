/* SPDX-License-Identifier: Apache-2.0
 *
 * bolt AMOUNT: a branchy program for bench/bolt. It compiles small programs in a language of its own to code for a
 * stack machine and runs that: a lexer, a recursive parser and an interpreter with a switch, each with checks for what
 * never happens in the middle of what always does, as real programs have them. Prints one number.
 */
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum operation { PUSH, LOAD, STORE, ADD, SUB, MUL, DIV, MOD, LESS, EQUAL, AND, JUMP, JUMP_IF_NOT, HALT };

#define CODE_MAX 4096
#define STACK_MAX 64

struct instruction {
  enum operation operation;
  int64_t value;
};

struct compiler {
  const char *at;
  int token; /* a letter, 'n' for a number, 'w' for while, 'i' for if, 'v' for a variable; 0 at the end */
  int64_t number;
  unsigned variable;
  struct instruction code[CODE_MAX];
  unsigned count;
  unsigned errors;
};

/* ---- the language: "a = a * 3 + 1; while a < b { ... } if a % 2 == 1 { ... }" ---- */

static void fail(struct compiler *compiler, const char *what)
{
  if (compiler->errors++ == 0)
    fprintf(stderr, "bolt: %s at '%.10s'\n", what, compiler->at);
}

static void word_next(struct compiler *compiler)
{
  const char *start = compiler->at;

  while (isalpha((unsigned char)*compiler->at))
    compiler->at++;
  if (compiler->at - start == 5 && !memcmp(start, "while", 5))
    compiler->token = 'w';
  else if (compiler->at - start == 2 && !memcmp(start, "if", 2))
    compiler->token = 'i';
  else if (compiler->at - start == 1) {
    compiler->token = 'v';
    compiler->variable = (unsigned)(*start - 'a') % 26;
  } else
    fail(compiler, "an unknown word");
}

static void token_next(struct compiler *compiler)
{
  while (*compiler->at == ' ' || *compiler->at == '\n')
    compiler->at++;
  if (!*compiler->at) {
    compiler->token = 0;
  } else if (isdigit((unsigned char)*compiler->at)) {
    compiler->number = 0;
    while (isdigit((unsigned char)*compiler->at)) {
      if (compiler->number > INT64_MAX / 20)
        fail(compiler, "a number that is too great");
      compiler->number = compiler->number * 10 + (*compiler->at++ - '0');
    }
    compiler->token = 'n';
  } else if (isalpha((unsigned char)*compiler->at)) {
    word_next(compiler);
  } else {
    compiler->token = *compiler->at++;
  }
}

static unsigned emit(struct compiler *compiler, enum operation operation, int64_t value)
{
  if (compiler->count == CODE_MAX) {
    fail(compiler, "too much code");
    return 0;
  }
  compiler->code[compiler->count] = (struct instruction){operation, value};
  return compiler->count++;
}

static void expect(struct compiler *compiler, int token)
{
  if (compiler->token != token)
    fail(compiler, "something else was expected");
  else
    token_next(compiler);
}

static void expression(struct compiler *compiler, int level);

static void operand(struct compiler *compiler)
{
  if (compiler->token == 'n')
    emit(compiler, PUSH, compiler->number);
  else if (compiler->token == 'v')
    emit(compiler, LOAD, compiler->variable);
  else if (compiler->token != '(')
    fail(compiler, "no operand");
  if (compiler->token == '(') {
    token_next(compiler);
    expression(compiler, 0);
    expect(compiler, ')');
  } else {
    token_next(compiler);
  }
}

static int level_of(int token, enum operation *operation)
{
  switch (token) {
  case '&':
    *operation = AND;
    return 1;
  case '<':
    *operation = LESS;
    return 2;
  case '=':
    *operation = EQUAL;
    return 2;
  case '+':
    *operation = ADD;
    return 3;
  case '-':
    *operation = SUB;
    return 3;
  case '*':
    *operation = MUL;
    return 4;
  case '/':
    *operation = DIV;
    return 4;
  case '%':
    *operation = MOD;
    return 4;
  default:
    return 0;
  }
}

static void expression(struct compiler *compiler, int level)
{
  enum operation operation = HALT;
  int own;

  operand(compiler);
  while ((own = level_of(compiler->token, &operation)) > level && !compiler->errors) {
    token_next(compiler);
    expression(compiler, own);
    emit(compiler, operation, 0);
  }
}

static void statements(struct compiler *compiler, int end)
{
  while (compiler->token != end && !compiler->errors) {
    int token = compiler->token;
    unsigned start = compiler->count, variable = compiler->variable, jump;

    token_next(compiler);
    if (token == 'v') {
      expect(compiler, ':');
      expression(compiler, 0);
      emit(compiler, STORE, variable);
      expect(compiler, ';');
    } else if (token == 'w' || token == 'i') {
      expression(compiler, 0);
      jump = emit(compiler, JUMP_IF_NOT, 0);
      expect(compiler, '{');
      statements(compiler, '}');
      expect(compiler, '}');
      if (token == 'w')
        emit(compiler, JUMP, start);
      compiler->code[jump].value = compiler->count;
    } else {
      fail(compiler, "no statement");
    }
  }
}

/* ---- the machine ---- */

static int64_t run(const struct compiler *compiler, int64_t variables[26])
{
  int64_t stack[STACK_MAX] = {0}, *top = stack;
  const struct instruction *at = compiler->code;

  for (;; at++) {
    if (top >= stack + STACK_MAX - 1 || top < stack) {
      fprintf(stderr, "bolt: the stack is full\n");
      exit(1);
    }
    switch (at->operation) {
    case PUSH:
      *++top = at->value;
      break;
    case LOAD:
      *++top = variables[at->value];
      break;
    case STORE:
      variables[at->value] = *top--;
      break;
    case ADD:
      top--;
      *top = (int64_t)((uint64_t)*top + (uint64_t)top[1]);
      break;
    case SUB:
      top--;
      *top = (int64_t)((uint64_t)*top - (uint64_t)top[1]);
      break;
    case MUL:
      top--;
      *top = (int64_t)((uint64_t)*top * (uint64_t)top[1]);
      break;
    case DIV:
    case MOD:
      top--;
      if (top[1] == 0 || (top[1] == -1 && *top == INT64_MIN)) {
        fprintf(stderr, "bolt: it cannot be divided\n");
        exit(1);
      }
      *top = at->operation == DIV ? *top / top[1] : *top % top[1];
      break;
    case LESS:
      top--;
      *top = *top < top[1];
      break;
    case EQUAL:
      top--;
      *top = *top == top[1];
      break;
    case AND:
      top--;
      *top &= top[1];
      break;
    case JUMP:
      at = compiler->code + at->value - 1;
      break;
    case JUMP_IF_NOT:
      if (*top-- == 0)
        at = compiler->code + at->value - 1;
      break;
    case HALT:
      return variables[0];
    }
  }
}

static const char *const programs[] = {
  "n: 2; a: 0; while n < 400 { d: 2; p: 1; while d * d < n + 1 & p { if n % d = 0 { p: 0; } d: d + 1; } a: a + p; n: n + 1; }",
  "n: 1; a: 0; while n < 120 { x: n; while 1 < x { if x % 2 = 1 { x: 3 * x + 1; } if x % 2 = 0 { x: x / 2; } a: a + 1; } n: n + 1; }",
  ("n: 0; a: 0; s: 7; while n < 3000 { s: (s * 1103515245 + 12345) % 2147483648; if s / 65536 % 8 < 3 { a: a + s % 10; } "
   "if s / 65536 % 16 = 1 { a: a - 5; } n: n + 1; }"),
};

int main(int argc, char **argv)
{
  static struct compiler compiler;
  long amount = argc > 1 ? strtol(argv[1], NULL, 10) : 1;
  uint64_t total = 0;

  for (long i = 0; i < amount; i++) {
    int64_t variables[26] = {0};

    memset(&compiler, 0, sizeof(compiler));
    compiler.at = programs[i % 3];
    token_next(&compiler);
    statements(&compiler, 0);
    emit(&compiler, HALT, 0);
    if (compiler.errors)
      return 1;
    total = total * 31 + (uint64_t)run(&compiler, variables);
  }
  printf("%llu\n", (unsigned long long)total);
  return 0;
}
