// bench: f(x float[1048576], y out float[1048576], rows = 262144) within 0
void f(const float* x, float* y, int rows) { // rows of four floats: four rows share a line
#pragma omp parallel for schedule(static) // one block of rows for each thread
  for (int r = 0; r < rows; ++r)
    for (int k = 0; k < 4; ++k) y[4 * r + k] = 2 * x[4 * r + k];
}
