/* The loop of a board around what its file defines: OBS and ACTIONS, Lane, begin, play, observe, and allow or not.
 *
 * Same work as one `step` of Shoal's compiled batch: actions are checked before anything moves, episodes are counted,
 * the last observation is kept where one ended, and a new one begins in the same step.
 */
#ifndef HAS_MASK
#define HAS_MASK 0
static inline void allow(const Lane *s, bool *mask) {}
#endif

typedef struct {
    int64_t num_envs;
    Lane *lanes;
    Book *books;
    uint8_t *obs;       /* [B, OBS] */
    float *reward;      /* [B] */
    bool *terminated;   /* [B] */
    bool *truncated;    /* [B] */
    uint8_t *final_obs; /* [B, OBS] */
    double *episode;    /* [B, 3]: return, length, seconds */
    bool *mask;         /* [B, ACTIONS] */
} Batch;

static inline void renew(Batch *batch, int64_t i, double now) {
    Book *b = &batch->books[i];
    begin(&batch->lanes[i], b->words);
    b->total = 0;
    b->length = 0;
    b->began = now;
}

void reset(Batch *batch, double now) {
    for (int64_t i = 0; i < batch->num_envs; i++) {
        renew(batch, i, now);
        observe(&batch->lanes[i], batch->obs + OBS * i);
        allow(&batch->lanes[i], batch->mask + ACTIONS * i);
    }
}

/* Returns how many episodes ended, or -(lane + 1) for the first lane whose action does not exist. */
int64_t step(Batch *batch, const int64_t *action, double now) {
    for (int64_t i = 0; i < batch->num_envs; i++)
        if (action[i] < 0 || action[i] >= ACTIONS) return -(i + 1);
    int64_t ended = 0;
    for (int64_t i = 0; i < batch->num_envs; i++) {
        Lane *s = &batch->lanes[i];
        Book *b = &batch->books[i];
        Outcome outcome = play(s, action[i], b->words);
        b->total += outcome.reward;
        b->length += 1;
        batch->reward[i] = (float)outcome.reward;
        batch->terminated[i] = outcome.terminated;
        batch->truncated[i] = outcome.truncated && !outcome.terminated;
        if (outcome.terminated || outcome.truncated) {
            ended += 1;
            batch->episode[3 * i] = b->total;
            batch->episode[3 * i + 1] = (double)b->length;
            batch->episode[3 * i + 2] = now - b->began;
            observe(s, batch->final_obs + OBS * i);
            renew(batch, i, now);
        }
        observe(s, batch->obs + OBS * i);
        if (HAS_MASK) allow(s, batch->mask + ACTIONS * i);
    }
    return ended;
}
