// What a repository of the Hugging Face Hub holds beside the weights' values:
// their names, and a configuration that tells their type.
//
//   std::string json = importer::hubConfig(config, "bfloat16");
//   std::string name = importer::hubName(config, "h.0.ln_1.weight");
//
// `config` is a config.json that importConfig took without an error.
#pragma once

#include <string>
#include <string_view>

namespace meshwork::importer {

/// The config.json for weights of the type that PyTorch calls `dtype`: its
/// other keys stay, in their order. Without "architectures" it gets the class
/// that `model_type` has in Transformers.
std::string hubConfig(std::string_view config, const std::string &dtype);

/// The name that this class gives a parameter of ours: GPT-2's begin with
/// "transformer.", which importing leaves out.
std::string hubName(std::string_view config, const std::string &parameter);

/// Whether classes keep the parameter in f32, whatever type the others have: a
/// bias that chooses experts is moved by less than 16 bits can tell.
bool staysF32(const std::string &parameter);

} // namespace meshwork::importer
