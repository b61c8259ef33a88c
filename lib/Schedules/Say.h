// Sentences put together from texts and numbers. (absl::StrCat takes no
// std::string_view where absl has a string_view of its own.)
#ifndef MESHWORK_LIB_SCHEDULES_SAY_H
#define MESHWORK_LIB_SCHEDULES_SAY_H

#include <string>
#include <string_view>
#include <type_traits>

namespace meshwork::schedules {

inline void append(std::string &) {}

template <typename Part, typename... Parts>
void append(std::string &to, const Part &part, const Parts &...parts) {
  if constexpr (std::is_integral_v<Part>)
    to += std::to_string(part);
  else
    to += std::string_view(part);
  append(to, parts...);
}

template <typename... Parts> std::string say(const Parts &...parts) {
  std::string result;
  append(result, parts...);
  return result;
}

} // namespace meshwork::schedules

#endif // MESHWORK_LIB_SCHEDULES_SAY_H
