/* What the hand-written loops share: the generator of a lane (xoroshiro128++), and what is counted of an episode. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint64_t words[2];
    double total;
    int64_t length;
    double began;
} Book;

static inline uint64_t rotate(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

static inline uint64_t bits(uint64_t *words) {
    uint64_t a = words[0], b = words[1], result = rotate(a + b, 17) + a;
    b ^= a;
    words[0] = rotate(a, 49) ^ b ^ (b << 21);
    words[1] = rotate(b, 28);
    return result;
}

static inline double uniform(uint64_t *words, double low, double high) {
    return low + (high - low) * ((double)(bits(words) >> 11) * 0x1.0p-53);
}

static inline int64_t integers(uint64_t *words, int64_t n) { return (int64_t)(((bits(words) >> 32) * (uint64_t)n) >> 32); }
