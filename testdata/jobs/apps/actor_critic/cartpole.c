/* SPDX-License-Identifier: Apache-2.0
 * A pole on a cart that is pushed to the left (0) or to the right (1): the
 * equations of Barto, Sutton and Anderson (1983) without friction, the
 * constants and the limits of CartPole-v1. It is a program as `environment` of
 * pd-job(5) runs it. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An array as numpy.save writes it, with a header of 128 bytes. */
static void put(const char* type, const char* shape, const void* data,
                size_t bytes) {
  char text[118];
  int n = snprintf(text, sizeof text,
                   "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }",
                   type, shape);
  memset(text + n, ' ', sizeof text - (size_t)n);
  text[sizeof text - 1] = '\n';
  fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, stdout);
  fwrite(text, 1, sizeof text, stdout);
  fwrite(data, 1, bytes, stdout);
}
/* The numbers of the next array; 0 where the input ends. */
static int get(void* data, size_t bytes) {
  unsigned char start[10], text[65536];
  if (fread(start, 1, 10, stdin) < 10) return 0;
  size_t more = start[8] + 256u * start[9];
  return fread(text, 1, more, stdin) == more &&
         fread(data, 1, bytes, stdin) == bytes;
}

static uint64_t state; /* of a linear congruential generator */
static double uniform(double low, double high) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return low + (high - low) * (double)(state >> 11) / 9007199254740992.0;
}

int main(void) {
  const double gravity = 9.8, cart = 1.0, pole = 0.1, half = 0.5, push = 10.0;
  const double tau = 0.02, far = 2.4, steep = 12 * M_PI / 180;
  const char* seed = getenv("PD_SEED");
  state = seed ? strtoull(seed, NULL, 10) : 0;
  for (int i = 0; i < 10; ++i) uniform(0, 1);
  for (;;) {
    double s[4]; /* place, speed, angle, angular speed */
    for (int i = 0; i < 4; ++i) s[i] = uniform(-0.05, 0.05);
    uint8_t done = 0;
    float seen[4] = {(float)s[0], (float)s[1], (float)s[2], (float)s[3]};
    put("<f4", "4,", seen, sizeof seen);
    for (int step = 1; !done; ++step) {
      int64_t action;
      fflush(stdout);
      if (!get(&action, sizeof action)) return 0;
      const double force = action == 1 ? push : -push, mass = cart + pole;
      const double c = cos(s[2]), q = sin(s[2]);
      const double pull = (force + pole * half * s[3] * s[3] * q) / mass;
      const double turn =
          (gravity * q - c * pull) / (half * (4.0 / 3.0 - pole * c * c / mass));
      const double run = pull - pole * half * turn * c / mass;
      const double rate[4] = {s[1], run, s[3], turn};
      for (int i = 0; i < 4; ++i) seen[i] = (float)(s[i] += tau * rate[i]);
      if (fabs(s[0]) > far || fabs(s[2]) > steep)
        done = 1;
      else if (step == 500)
        done = 2;
      const float reward = 1;
      put("<f4", "", &reward, sizeof reward);
      put("|u1", "", &done, sizeof done);
      put("<f4", "4,", seen, sizeof seen);
    }
  }
}
