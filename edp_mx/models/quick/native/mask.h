/* Masks of dropout. */

#pragma once

#include "common.h"

namespace {

const int DRAWS = 64; /* as in `layers.py` */

/* The places that are dropped: those whose hash under two keys is below `lost`. Only the draws are
 * stored for the backward pass. They are MXNet's own dropout of ones at a rate of one half: 0 or 2
 * in training, which give the bits of the two keys; outside training all 1, and nothing is
 * dropped. */
struct Mask {
    uint32_t key = 0, other = 1, lost = 0;
    float scale = 1.0f; /* of the kept values: 1 / (1 - rate) */

    Mask(const float *draws, float rate) {
        bool is_train = false;
        uint32_t keys[2] = {0, 0};
        for (int i = 0; i < DRAWS; i++) {
            is_train |= draws[i] != 1.0f;
            keys[i / 32] |= (uint32_t)(draws[i] > 1.0f) << i % 32;
        }
        if (!is_train) return;
        key = keys[0];
        other = keys[1];
        lost = (uint32_t)(rate * 4294967296.0);
        scale = 1.0f / (1.0f - rate);
    }

    /* 32 random bits of place `i`. Source: Wellons 2018, "lowbias32", with a second key. */
    INLINE uint32_t hash_of(uint32_t i) const {
        uint32_t h = i ^ key;
        h ^= h >> 16;
        h *= 0x7feb352du;
        h ^= h >> 15;
        h += other;
        h *= 0x846ca68bu;
        return h ^ h >> 16;
    }

    INLINE bool loses(uint32_t i) const { return hash_of(i) < lost; }
};

} // namespace
