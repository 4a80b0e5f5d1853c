/* 2048 by hand: the rules of `Twenty48` in boards.py as somebody would write them in C. */
#include <string.h>

#include "lanes.h"

enum { OBS = 16 * 16, ACTIONS = 4 };

typedef struct {
    int8_t board[4][4];
} Lane;

typedef struct {
    double reward;
    bool terminated, truncated;
} Outcome;

static inline void add_tile(Lane *s, uint64_t *words) {
    int8_t *board = &s->board[0][0];
    int free = 0;
    for (int cell = 0; cell < 16; cell++) free += board[cell] == 0;
    int64_t left = integers(words, free);
    for (int cell = 0; cell < 16; cell++)
        if (board[cell] == 0 && left-- == 0) {
            board[cell] = uniform(words, 0.0, 1.0) < 0.9 ? 1 : 2;
            return;
        }
}

static inline void begin(Lane *s, uint64_t *words) {
    memset(s->board, 0, sizeof s->board);
    add_tile(s, words);
    add_tile(s, words);
}

/* Left, right, up, down; returns whether anything moves, and adds to the points. */
static inline bool slide(Lane *s, int action, bool write, double *points) {
    int8_t *board = &s->board[0][0];
    int across = action < 2 ? 4 : 1, along = action < 2 ? 1 : 4;
    bool moved = false;
    for (int i = 0; i < 4; i++) {
        int8_t line[4] = {0, 0, 0, 0};
        int8_t *first = board + i * across + (action % 2 ? 3 * along : 0);
        int stride = action % 2 ? -along : along, at = 0;
        bool can_merge = false;
        for (int k = 0; k < 4; k++) {
            int8_t tile = first[k * stride];
            if (tile == 0) continue;
            if (can_merge && line[at - 1] == tile) {
                line[at - 1] += 1;
                *points += (double)(2LL << tile);
                can_merge = false;
                moved = true;
            } else {
                moved |= at != k;
                line[at++] = tile;
                can_merge = true;
            }
        }
        if (write)
            for (int k = 0; k < 4; k++) first[k * stride] = line[k];
    }
    return moved;
}

static inline Outcome play(Lane *s, int64_t action, uint64_t *words) {
    double gained = 0.0, ignored = 0.0;
    if (slide(s, (int)action, true, &gained)) add_tile(s, words);
    bool any = false;
    for (int a = 0; a < 4 && !any; a++) any = slide(s, a, false, &ignored);
    return (Outcome){gained, !any, false};
}

static inline void observe(const Lane *s, uint8_t *out) {
    const int8_t *board = &s->board[0][0];
    for (int plane = 0; plane < 16; plane++)
        for (int cell = 0; cell < 16; cell++) out[16 * plane + cell] = board[cell] == plane;
}

#define HAS_MASK 1
static inline void allow(const Lane *s, bool *mask) {
    double ignored = 0.0;
    for (int action = 0; action < ACTIONS; action++) mask[action] = slide((Lane *)s, action, false, &ignored);
}

#include "boards.h"
