#pragma once

// sums[i] = values[i] + values[i + 1] + ... + values[i + width - 1]
void window_sums(const int* values, long long* sums, int count, int width);
