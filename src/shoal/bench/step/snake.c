/* Snake by hand: the rules of `Snake` in boards.py as somebody would write them in C. */
#include <string.h>

#include "lanes.h"

enum { N = 10, CELLS = N * N, OBS = 3 * CELLS, ACTIONS = 4 };

typedef struct {
    int8_t board[N][N];
    int16_t body[CELLS];
    int16_t tail, length;
    int8_t r, c;
    int16_t food, hunger;
} Lane;

typedef struct {
    double reward;
    bool terminated, truncated;
} Outcome;

static inline void place_food(Lane *s, uint64_t *words) {
    int64_t left = integers(words, CELLS - s->length);
    const int8_t *board = &s->board[0][0];
    for (int cell = 0; cell < CELLS; cell++)
        if (board[cell] == 0 && left-- == 0) {
            s->food = (int16_t)cell;
            return;
        }
}

static inline void begin(Lane *s, uint64_t *words) {
    memset(s->board, 0, sizeof s->board);
    memset(s->body, 0, sizeof s->body);
    s->r = s->c = N / 2;
    s->tail = 0;
    s->length = 1;
    s->hunger = 0;
    s->body[0] = s->r * N + s->c;
    s->board[s->r][s->c] = 1;
    place_food(s, words);
}

static inline Outcome play(Lane *s, int64_t action, uint64_t *words) {
    int r = s->r + (action == 1) - (action == 0), c = s->c + (action == 3) - (action == 2);
    s->hunger += 1;
    if (r < 0 || r >= N || c < 0 || c >= N) return (Outcome){-1.0, true, false};
    bool eats = r * N + c == s->food;
    if (!eats) {
        int last = s->body[s->tail];
        s->board[last / N][last % N] = 0;
        s->tail = (s->tail + 1) % CELLS;
        s->length -= 1;
    }
    if (s->board[r][c]) return (Outcome){-1.0, true, false};
    s->r = (int8_t)r;
    s->c = (int8_t)c;
    s->board[r][c] = 1;
    s->body[(s->tail + s->length) % CELLS] = (int16_t)(r * N + c);
    s->length += 1;
    if (!eats) return (Outcome){0.0, false, s->hunger >= 200};
    s->hunger = 0;
    if (s->length == CELLS) return (Outcome){1.0, true, false};
    place_food(s, words);
    return (Outcome){1.0, false, false};
}

static inline void observe(const Lane *s, uint8_t *out) {
    memcpy(out, s->board, CELLS);
    memset(out + CELLS, 0, 2 * CELLS);
    out[CELLS + s->r * N + s->c] = 1;
    out[2 * CELLS + s->food] = 1;
}

#include "boards.h"
