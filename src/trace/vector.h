/* SPDX-License-Identifier: Apache-2.0
 *
 * Sixteen entries at a time, for the writer: with the vectors that every x86-64 processor has, or without.
 */
#ifndef TRACE_VECTOR_H
#define TRACE_VECTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define VECTOR_WORDS 16u

#ifdef __SSE2__

/* Copies VECTOR_WORDS words if those at `other` are the same. The words may change meanwhile. Returns whether they are
 * the same. */
static inline bool words_copy_same(uint32_t *to, const uint32_t *from, const uint32_t *other)
{
  __m128i words[4], same = _mm_set1_epi32(-1);

  for (unsigned i = 0; i < 4; i++) {
    words[i] = _mm_loadu_si128((const __m128i *)from + i);
    same = _mm_and_si128(same, _mm_cmpeq_epi32(words[i], _mm_loadu_si128((const __m128i *)other + i)));
  }
  if (_mm_movemask_epi8(same) != 0xFFFF)
    return false;
  for (unsigned i = 0; i < 4; i++)
    _mm_storeu_si128((__m128i *)to + i, words[i]);
  return true;
}

/* Copies `vectors` times VECTOR_WORDS words, each of which is read once. */
static inline void words_copy_many(uint32_t *to, const uint32_t *from, unsigned vectors)
{
  for (unsigned i = 0; i < vectors * 4; i++)
    _mm_storeu_si128((__m128i *)to + i, _mm_loadu_si128((const __m128i *)from + i));
}

/* Returns a mask of those of VECTOR_WORDS words that differ. */
static inline uint32_t words_differ(const uint32_t *one, const uint32_t *other)
{
  __m128i same[4];

  for (unsigned i = 0; i < 4; i++)
    same[i] = _mm_cmpeq_epi32(_mm_loadu_si128((const __m128i *)one + i), _mm_loadu_si128((const __m128i *)other + i));
  same[0] = _mm_packs_epi16(_mm_packs_epi32(same[0], same[1]), _mm_packs_epi32(same[2], same[3]));
  return ~(uint32_t)_mm_movemask_epi8(same[0]) & 0xFFFF;
}

/* Copies VECTOR_WORDS bytes. Returns their sum. */
static inline uint32_t bytes_copy_sum(uint8_t *to, const uint8_t *from)
{
  __m128i bytes = _mm_loadu_si128((const __m128i *)from), sums = _mm_sad_epu8(bytes, _mm_setzero_si128());

  _mm_storeu_si128((__m128i *)to, bytes);
  return (uint32_t)_mm_cvtsi128_si32(sums) + (uint32_t)_mm_extract_epi16(sums, 4);
}

#else

static inline bool words_copy_same(uint32_t *to, const uint32_t *from, const uint32_t *other)
{
  uint32_t words[VECTOR_WORDS];

  memcpy(words, from, sizeof(words)); /* read once: `from` may be memory that an untrusted program changes */
  if (memcmp(words, other, sizeof(words)) != 0)
    return false;
  memcpy(to, words, sizeof(words));
  return true;
}

static inline void words_copy_many(uint32_t *to, const uint32_t *from, unsigned vectors)
{
  memcpy(to, from, (size_t)vectors * VECTOR_WORDS * sizeof(*to));
}

static inline uint32_t words_differ(const uint32_t *one, const uint32_t *other)
{
  uint32_t differ = 0;

  for (unsigned i = 0; i < VECTOR_WORDS; i++)
    differ |= (uint32_t)(one[i] != other[i]) << i;
  return differ;
}

static inline uint32_t bytes_copy_sum(uint8_t *to, const uint8_t *from)
{
  uint32_t sum = 0;

  for (unsigned i = 0; i < VECTOR_WORDS; i++)
    sum += to[i] = from[i];
  return sum;
}

#endif

#endif
