/* SPDX-License-Identifier: Apache-2.0
 * A pendulum that a motor swings up and holds: one rod, a torque in [-2, 2],
 * the constants of Pendulum-v1. It is a program as `environment` of pd-job(5)
 * runs it. */
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
  const double gravity = 10, mass = 1, length = 1, tau = 0.05;
  const double most_torque = 2, most_speed = 8;
  const char* seed = getenv("PD_SEED");
  state = seed ? strtoull(seed, NULL, 10) : 0;
  for (int i = 0; i < 10; ++i) uniform(0, 1);
  for (;;) {
    double angle = uniform(-M_PI, M_PI),
           speed = uniform(-1, 1); /* 0: upright */
    for (int step = 0;; ++step) {
      const float seen[3] = {(float)cos(angle), (float)sin(angle),
                             (float)speed};
      put("<f4", "3,", seen, sizeof seen);
      if (step == 200) break; /* its done was 2 */
      float action;
      fflush(stdout);
      if (!get(&action, sizeof action)) return 0;
      const double torque = fmin(fmax(action, -most_torque), most_torque);
      const double off = remainder(angle, 2 * M_PI);
      const float reward =
          (float)-(off * off + 0.1 * speed * speed + 0.001 * torque * torque);
      speed += tau * (1.5 * gravity / length * sin(angle) +
                      3 / (mass * length * length) * torque);
      speed = fmin(fmax(speed, -most_speed), most_speed);
      angle += tau * speed;
      const uint8_t done = step == 199 ? 2 : 0;
      put("<f4", "", &reward, sizeof reward);
      put("|u1", "", &done, sizeof done);
    }
  }
}
