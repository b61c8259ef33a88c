// A libcuda.so.1 with no device that takes any kernel: with it cuDNN plans
// graphs for a GPU that is described to it, compiles their kernels, and has
// somewhere to load them. It asks for all of these when it is opened.
extern "C" {
int cuLibraryLoadData(void **library, ...) {
  *library = library;
  return 0;
}
int cuLibraryUnload(void *) { return 0; }
int cuLibraryGetKernel(void **kernel, ...) {
  *kernel = kernel;
  return 0;
}
int cuKernelSetAttribute(int, int, void *, int) { return 0; }
int cuKernelGetAttribute(int *value, int, void *, int) {
  *value = 0;
  return 0;
}

#define NO_DEVICE(name)                                                        \
  int name() { return 100; }
NO_DEVICE(cuCtxGetCurrent)
NO_DEVICE(cuCtxGetLimit)
NO_DEVICE(cuCtxPopCurrent)
NO_DEVICE(cuCtxPushCurrent)
NO_DEVICE(cuDeviceGet)
NO_DEVICE(cuDeviceGetCount)
NO_DEVICE(cuDriverGetVersion)
NO_DEVICE(cuGetErrorName)
NO_DEVICE(cuGetErrorString)
NO_DEVICE(cuLaunchCooperativeKernel)
NO_DEVICE(cuLaunchKernel)
NO_DEVICE(cuLaunchKernelEx)
NO_DEVICE(cuLibraryLoadFromFile)
NO_DEVICE(cuLinkAddData)
NO_DEVICE(cuLinkComplete)
NO_DEVICE(cuLinkCreate)
NO_DEVICE(cuLinkDestroy)
NO_DEVICE(cuOccupancyMaxPotentialClusterSize)
NO_DEVICE(cuStreamGetCtx)
}
