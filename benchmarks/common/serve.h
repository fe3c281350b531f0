// A participant of a benchmark: a process that answers one JSON request a line with one JSON line.
#pragma once

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>

namespace bench {

using Json = nlohmann::json;

// Answers until the input ends. What `answer` throws becomes {"error": message}.
int serve(const std::function<Json(const Json& request)>& answer);

class Clock {
  public:
    double seconds() const {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    }

  private:
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace bench
