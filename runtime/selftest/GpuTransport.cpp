#include "runtime/selftest/GpuTransport.h"
#include "lib/Plan/StatusMacros.h"
#include "runtime/device/cuda/Peak.h"
#include "runtime/machine/Clock.h"
#include <algorithm>

namespace meshwork::runtime {
namespace {
constexpr uint64_t copiedBytes = 256 << 20; // far beyond any cache
constexpr int copies = 5;

absl::Span<std::byte> bytesOf(const Strided &view) {
  return {view.data, static_cast<size_t>(view.elements() * view.width())};
}
} // namespace

class GpuTransport::Collective : public PreparedCollective {
public:
  static absl::StatusOr<std::unique_ptr<Collective>>
  make(GpuTransport &on, uint32_t rank, CollectiveRequest request) {
    std::unique_ptr<Collective> made(new Collective(on));
    for (TransferRequest &part : request.parts) {
      made->targets.push_back(part.dst);
      for (Strided *view : {&part.src, &part.dst}) {
        absl::Span<std::byte> bytes = bytesOf(*view);
        made->memory.emplace_back();
        MESHWORK_ASSIGN_OR_RETURN(made->memory.back(), on.place(*view));
        MESHWORK_RETURN_IF_ERROR(
            on.staging->write(made->memory.back().address(), bytes));
      }
    }
    MESHWORK_ASSIGN_OR_RETURN(made->collective,
                              on.nccl->prepare(rank, std::move(request)));
    return made;
  }

  absl::Status run(ParallelFor, CommTimes &times) override {
    MESHWORK_RETURN_IF_ERROR(on.queue->finish());
    int64_t begin = steadyNs();
    MESHWORK_RETURN_IF_ERROR(collective->enqueue(on.queue->stream(), times));
    MESHWORK_RETURN_IF_ERROR(on.queue->finish());
    times.moveNs += steadyNs() - begin;
    for (size_t i = 0; i < targets.size(); ++i)
      MESHWORK_RETURN_IF_ERROR(
          on.staging->read(memory[2 * i + 1].address(), bytesOf(targets[i])));
    return absl::OkStatus();
  }

private:
  explicit Collective(GpuTransport &on) : on(on) {}
  GpuTransport &on;
  std::vector<Strided> targets;           // on the host
  std::vector<cuda::DeviceMemory> memory; // a source, its target, ...
  std::unique_ptr<cuda::DeviceCollective> collective;
};

class GpuTransport::Transfer : public PreparedTransfer {
public:
  static absl::StatusOr<std::unique_ptr<Transfer>>
  make(GpuTransport &on, uint32_t rank, PairRequest request) {
    std::unique_ptr<Transfer> made(new Transfer(on));
    for (Strided &view : request.parts) {
      made->memory.emplace_back();
      MESHWORK_ASSIGN_OR_RETURN(made->memory.back(), on.place(view));
    }
    MESHWORK_ASSIGN_OR_RETURN(
        made->transfer, on.nccl->prepareTransfer(rank, std::move(request)));
    return made;
  }

  absl::Status start(ParallelFor) override {
    CommTimes ignored;
    return transfer->start(on.queue->stream(), ignored);
  }
  absl::Status finish(ParallelFor, CommTimes &times) override {
    int64_t begin = steadyNs();
    MESHWORK_RETURN_IF_ERROR(transfer->finish(on.queue->stream(), times));
    MESHWORK_RETURN_IF_ERROR(on.queue->finish());
    times.moveNs += steadyNs() - begin;
    return absl::OkStatus();
  }

private:
  explicit Transfer(GpuTransport &on) : on(on) {}
  GpuTransport &on;
  std::vector<cuda::DeviceMemory> memory;
  std::unique_ptr<cuda::DeviceTransfer> transfer;
};

absl::StatusOr<cuda::DeviceMemory> GpuTransport::place(Strided &view) {
  absl::StatusOr<cuda::DeviceMemory> memory =
      cuda::DeviceMemory::create(*gpu, bytesOf(view).size());
  if (memory.ok())
    view.data = reinterpret_cast<std::byte *>(memory->address());
  return memory;
}

absl::StatusOr<std::unique_ptr<GpuTransport>>
GpuTransport::create(Transport &host, const Mesh &mesh, uint32_t rank,
                     int ordinal, std::vector<CollectiveRequest> requests,
                     std::vector<PairRequest> pairs, double timeoutSeconds) {
  std::unique_ptr<GpuTransport> made(new GpuTransport(host));
  const cuda::Driver *driver = nullptr;
  MESHWORK_ASSIGN_OR_RETURN(driver, cuda::Driver::open());
  MESHWORK_ASSIGN_OR_RETURN(made->gpu, cuda::Gpu::open(*driver, ordinal));
  MESHWORK_ASSIGN_OR_RETURN(made->nccl,
                            cuda::NcclTransport::create(
                                {*driver, host, mesh, rank, std::move(requests),
                                 timeoutSeconds, std::move(pairs)}));
  MESHWORK_ASSIGN_OR_RETURN(made->queue,
                            cuda::Queue::create(*made->gpu,
                                                {rank, host, made->nccl.get(),
                                                 nullptr, timeoutSeconds},
                                                /*urgent=*/false));
  MESHWORK_ASSIGN_OR_RETURN(made->staging,
                            cuda::Staging::create(*made->gpu, *made->queue));
  return made;
}

absl::StatusOr<std::unique_ptr<PreparedCollective>>
GpuTransport::prepare(uint32_t rank, CollectiveRequest request) {
  return Collective::make(*this, rank, std::move(request));
}

absl::StatusOr<std::unique_ptr<PreparedTransfer>>
GpuTransport::prepareTransfer(uint32_t rank, PairRequest request) {
  return Transfer::make(*this, rank, std::move(request));
}

absl::StatusOr<GpuRates> GpuTransport::measure() {
  GpuRates rates;
  MESHWORK_ASSIGN_OR_RETURN(rates.f32,
                            cuda::peakTflops(*gpu, *queue, plan::DType::f32));
  MESHWORK_ASSIGN_OR_RETURN(rates.bf16,
                            cuda::peakTflops(*gpu, *queue, plan::DType::bf16));
  cuda::DeviceMemory memory;
  MESHWORK_ASSIGN_OR_RETURN(memory,
                            cuda::DeviceMemory::create(*gpu, 2 * copiedBytes));
  int64_t best = INT64_MAX;
  for (int i = 0; i < copies; ++i) {
    int64_t begin = steadyNs();
    MESHWORK_RETURN_IF_ERROR(gpu->driver().check(
        gpu->driver().copyOnDevice(memory.address() + copiedBytes,
                                   memory.address(), copiedBytes,
                                   queue->stream()),
        "copying on the GPU"));
    MESHWORK_RETURN_IF_ERROR(queue->finish());
    best = std::min(best, steadyNs() - begin);
  }
  rates.copyBytes = 2 * static_cast<double>(copiedBytes) /
                    (static_cast<double>(std::max<int64_t>(best, 1)) * 1e-9);
  return rates;
}

} // namespace meshwork::runtime
