__global__ void step(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = x[i] * 0.5f + 1;
}
cudaGraphExec_t captured(float* x, int n, int steps, cudaStream_t stream) {
  cudaGraph_t graph{};
  cudaGraphExec_t exec{};
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
  for (int i = 0; i < steps; ++i) step<<<(n + 255) / 256, 256, 0, stream>>>(x, n);
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&exec, graph, 0);
  cudaGraphDestroy(graph);
  return exec; // cudaGraphLaunch(exec, stream), as often as wanted
}
