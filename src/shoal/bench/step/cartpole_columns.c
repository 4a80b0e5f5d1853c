/* CartPole by hand as in cartpole.c, with one array per field, so that the compiler vectorises the loop over lanes.
 *
 * Blocks of lanes that stay in the cache, three passes each: step, begin the ended anew, observe. Built with
 * -O3 -march=native -fno-math-errno -fno-trapping-math. Sine and cosine are polynomials (fdlibm's, as in the kernel), since
 * gcc 12 vectorises no call of both; an angle needs no reduction here, as a pole that leans by pi/4 has long fallen.
 */
#include "lanes.h"

typedef struct {
    int64_t num_envs;
    double *restrict x, *restrict speed, *restrict angle, *restrict spin;
    int32_t *restrict t;
    uint64_t *restrict words; /* [B, 2] */
    double *restrict total;
    int64_t *restrict length;
    double *restrict began;
    float *restrict obs; /* [B, 4] */
    float *restrict reward;
    bool *restrict terminated, *restrict truncated;
    float *restrict final_obs; /* [B, 4] */
    double *restrict episode;  /* [B, 3]: return, length, seconds */
} Batch;

static const double GRAVITY = 9.8, CART_MASS = 1.0, POLE_MASS = 0.1, HALF_LENGTH = 0.5, FORCE = 10.0, DT = 0.02;
static const double POSITION_LIMIT = 2.4, ANGLE_LIMIT = 12 * 2 * 3.14159265358979323846 / 360;
enum { MAX_STEPS = 500, BLOCK = 512 };

static inline double sine_of(double r) {
    double z = r * r, z2 = z * z, z4 = z2 * z2;
    double sine = (-1.66666666666666324348e-01 + z * 8.33333333332248946124e-03) +
                  z2 * (-1.98412698298579493134e-04 + z * 2.75573137070700676789e-06) +
                  z4 * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10);
    return r + r * z * sine;
}

static inline double cosine_of(double r) {
    double z = r * r, z2 = z * z, z4 = z2 * z2;
    double cosine = (4.16666666666666019037e-02 + z * -1.38888888888741095749e-03) +
                    z2 * (2.48015872894767294178e-05 + z * -2.75573143513906633035e-07) +
                    z4 * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11);
    return 1.0 - 0.5 * z + z2 * cosine;
}

static inline void begin(Batch *batch, int64_t i, double now) {
    uint64_t *words = batch->words + 2 * i;
    batch->x[i] = uniform(words, -0.05, 0.05);
    batch->speed[i] = uniform(words, -0.05, 0.05);
    batch->angle[i] = uniform(words, -0.05, 0.05);
    batch->spin[i] = uniform(words, -0.05, 0.05);
    batch->t[i] = 0;
    batch->total[i] = 0;
    batch->length[i] = 0;
    batch->began[i] = now;
}

static inline void observe(const Batch *batch, int64_t i, float *restrict out) {
    out[4 * i] = (float)batch->x[i];
    out[4 * i + 1] = (float)batch->speed[i];
    out[4 * i + 2] = (float)batch->angle[i];
    out[4 * i + 3] = (float)batch->spin[i];
}

void reset(Batch *batch, double now) {
    for (int64_t i = 0; i < batch->num_envs; i++) {
        begin(batch, i, now);
        observe(batch, i, batch->obs);
    }
}

/* One pass each for numbers of eight bytes and for the others: gcc does not vectorise all sizes in one loop. */
static __attribute__((noinline)) void push(int64_t count, const int64_t *restrict action, double *restrict x,
                                           double *restrict speed, double *restrict angle, double *restrict spin,
                                           double *restrict total, int64_t *restrict length) {
    const double total_mass = CART_MASS + POLE_MASS, moment = POLE_MASS * HALF_LENGTH;
    for (int64_t i = 0; i < count; i++) {
        double force = action[i] == 1 ? FORCE : -FORCE;
        double sine = sine_of(angle[i]), cosine = cosine_of(angle[i]);
        double pull = (force + moment * spin[i] * spin[i] * sine) / total_mass;
        double spin_rate = (GRAVITY * sine - cosine * pull) /
                           (HALF_LENGTH * (4.0 / 3.0 - POLE_MASS * cosine * cosine / total_mass));
        double acceleration = pull - moment * spin_rate * cosine / total_mass;
        x[i] += DT * speed[i];
        speed[i] += DT * acceleration;
        angle[i] += DT * spin[i];
        spin[i] += DT * spin_rate;
        total[i] += 1.0;
        length[i] += 1;
    }
}

static __attribute__((noinline)) void judge(int64_t count, const double *restrict x, const double *restrict angle,
                                            int32_t *restrict t, float *restrict reward, bool *restrict terminated,
                                            bool *restrict truncated) {
    for (int64_t i = 0; i < count; i++) {
        t[i] += 1;
        bool fallen = (fabs(x[i]) > POSITION_LIMIT) | (fabs(angle[i]) > ANGLE_LIMIT);
        reward[i] = 1.0f;
        terminated[i] = fallen;
        truncated[i] = (t[i] >= MAX_STEPS) & !fallen;
    }
}

/* Returns how many episodes ended, or -(lane + 1) for the first lane whose action is neither 0 nor 1. */
int64_t step(Batch *batch, const int64_t *restrict action, double now) {
    bool wrong = false;
    for (int64_t i = 0; i < batch->num_envs; i++) wrong |= (action[i] < 0) | (action[i] > 1);
    for (int64_t i = 0; wrong; i++)
        if (action[i] < 0 || action[i] > 1) return -(i + 1);
    int64_t ended = 0;
    for (int64_t first = 0; first < batch->num_envs; first += BLOCK) {
        int64_t last = first + BLOCK < batch->num_envs ? first + BLOCK : batch->num_envs;
        push(last - first, action + first, batch->x + first, batch->speed + first, batch->angle + first,
             batch->spin + first, batch->total + first, batch->length + first);
        judge(last - first, batch->x + first, batch->angle + first, batch->t + first, batch->reward + first,
              batch->terminated + first, batch->truncated + first);
        for (int64_t i = first; i < last; i++) {
            if (batch->terminated[i] | batch->truncated[i]) {
                ended += 1;
                batch->episode[3 * i] = batch->total[i];
                batch->episode[3 * i + 1] = (double)batch->length[i];
                batch->episode[3 * i + 2] = now - batch->began[i];
                observe(batch, i, batch->final_obs);
                begin(batch, i, now);
            }
        }
        for (int64_t i = first; i < last; i++) observe(batch, i, batch->obs);
    }
    return ended;
}
