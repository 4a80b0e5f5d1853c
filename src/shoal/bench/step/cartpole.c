/* CartPole by hand: the work of one `step` of Shoal's compiled batch, as somebody would write it in C.
 *
 * Same physics (double), same generator (xoroshiro128++), same autoreset in the same step, same outputs, same episode
 * statistics, and the actions are checked before anything moves. Built by the benchmark with -O3 -march=native.
 */
#include "lanes.h"

typedef struct {
    double x, speed, angle, spin;
    int32_t t;
} Lane;

typedef struct {
    int64_t num_envs;
    Lane *lanes;
    Book *books;
    float *obs;       /* [B, 4] */
    float *reward;    /* [B] */
    bool *terminated; /* [B] */
    bool *truncated;  /* [B] */
    float *final_obs; /* [B, 4] */
    double *episode;  /* [B, 3]: return, length, seconds */
} Batch;

static const double GRAVITY = 9.8, CART_MASS = 1.0, POLE_MASS = 0.1, HALF_LENGTH = 0.5, FORCE = 10.0, DT = 0.02;
static const double POSITION_LIMIT = 2.4, ANGLE_LIMIT = 12 * 2 * 3.14159265358979323846 / 360;
enum { MAX_STEPS = 500 };

static inline void begin(Lane *s, Book *b, double now) {
    s->x = uniform(b->words, -0.05, 0.05);
    s->speed = uniform(b->words, -0.05, 0.05);
    s->angle = uniform(b->words, -0.05, 0.05);
    s->spin = uniform(b->words, -0.05, 0.05);
    s->t = 0;
    b->total = 0;
    b->length = 0;
    b->began = now;
}

static inline void observe(const Lane *s, float *out) {
    out[0] = (float)s->x;
    out[1] = (float)s->speed;
    out[2] = (float)s->angle;
    out[3] = (float)s->spin;
}

static inline void push(Lane *s, double force) {
    double total_mass = CART_MASS + POLE_MASS, moment = POLE_MASS * HALF_LENGTH;
    double sine = sin(s->angle), cosine = cos(s->angle);
    double pull = (force + moment * s->spin * s->spin * sine) / total_mass;
    double spin_rate = (GRAVITY * sine - cosine * pull) /
                       (HALF_LENGTH * (4.0 / 3.0 - POLE_MASS * cosine * cosine / total_mass));
    double acceleration = pull - moment * spin_rate * cosine / total_mass;
    s->x += DT * s->speed;
    s->speed += DT * acceleration;
    s->angle += DT * s->spin;
    s->spin += DT * spin_rate;
}

void reset(Batch *batch, double now) {
    for (int64_t i = 0; i < batch->num_envs; i++) {
        begin(&batch->lanes[i], &batch->books[i], now);
        observe(&batch->lanes[i], batch->obs + 4 * i);
    }
}

/* Returns how many episodes ended, or -(lane + 1) for the first lane whose action is neither 0 nor 1. */
int64_t step(Batch *batch, const int64_t *action, double now) {
    for (int64_t i = 0; i < batch->num_envs; i++)
        if (action[i] < 0 || action[i] > 1) return -(i + 1);
    int64_t ended = 0;
    for (int64_t i = 0; i < batch->num_envs; i++) {
        Lane *s = &batch->lanes[i];
        Book *b = &batch->books[i];
        push(s, action[i] == 1 ? FORCE : -FORCE);
        s->t += 1;
        b->total += 1.0;
        b->length += 1;
        bool fallen = fabs(s->x) > POSITION_LIMIT || fabs(s->angle) > ANGLE_LIMIT;
        bool late = s->t >= MAX_STEPS;
        batch->reward[i] = 1.0f;
        batch->terminated[i] = fallen;
        batch->truncated[i] = late && !fallen;
        if (fallen || late) {
            ended += 1;
            batch->episode[3 * i] = b->total;
            batch->episode[3 * i + 1] = (double)b->length;
            batch->episode[3 * i + 2] = now - b->began;
            observe(s, batch->final_obs + 4 * i);
            begin(s, b, now);
        }
        observe(s, batch->obs + 4 * i);
    }
    return ended;
}
