// Does not compile: the launch lacks a bracket.
__global__ void nothing() {}
extern "C" void solve() { nothing<<<1, 1>>(); }
