// A plan that a GPU can be opened with, and nothing more.
#pragma once

#include "meshwork/Plan/Plan.h"
#include <string_view>

namespace meshwork::runtime::cuda::test {

inline const plan::Plan &
planWithoutKernels(flatbuffers::FlatBufferBuilder &builder) {
  constexpr std::string_view code =
      ".version 7.0\n.target sm_80\n.address_size 64\n";
  plan::PlanT plan;
  plan.images.push_back(std::make_unique<plan::ImageT>());
  plan.images[0]->arch = "sm_80";
  plan.images[0]->kind = plan::ImageKind::ptx;
  plan.images[0]->code.assign(code.begin(), code.end());
  plan.images[0]->code.push_back(0);
  builder.Finish(plan::Plan::Pack(builder, &plan));
  return *flatbuffers::GetRoot<plan::Plan>(builder.GetBufferPointer());
}

} // namespace meshwork::runtime::cuda::test
