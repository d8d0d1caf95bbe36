#include "simulate/swf.h"

#include <array>
#include <optional>

#include <fmt/format.h>

#include "base/printable.h"
#include "simulate/csv.h"

namespace tp::simulate {
namespace {

constexpr size_t kFields = 18;
// Fields of a line, counted from 0.
constexpr size_t kSubmit = 1;
constexpr size_t kRunTime = 3;
constexpr size_t kAllocated = 4;
constexpr size_t kRequested = 7;
constexpr size_t kRequestedTime = 8;
constexpr size_t kStatus = 10;
constexpr size_t kUser = 11;

// Of seconds, processors and numbers of users alike: 300 years, and far from where sums overflow.
constexpr int64_t kMost = 10'000'000'000;
constexpr std::string_view kBlanks = " \t";

using Fields = std::array<int64_t, kFields>;

std::string_view TakeWord(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(kBlanks));
  line.remove_prefix(word.size());
  return word;
}

// Blanks alone: no job, and no problem.
std::optional<Fields> ReadFields(std::string_view line, int number, decode::Problems& problems) {
  Fields fields{};
  size_t count = 0;
  const char* begin = line.data();
  for (std::string_view word = TakeWord(line); !word.empty(); word = TakeWord(line), ++count) {
    const auto value = WholeNumber(word, -1, kMost);
    if (!value || count == kFields) {
      const int column = static_cast<int>(word.data() - begin) + 1;
      problems.Add({number, column}, value ? fmt::format("more than the {} fields of a job", kFields)
                                           : fmt::format("{} is not a number from -1 to {}", Quoted(word), kMost));
      return std::nullopt;
    }
    fields[count] = *value;
  }
  if (count == kFields) return fields;
  if (count > 0) problems.Add({number, 1}, fmt::format("{} fields; a job has {}", count, kFields));
  return std::nullopt;
}

class Reader {
 public:
  Reader(const SwfShape& shape, decode::Problems& problems) : shape_(shape), problems_(problems) {}

  Workload Read(std::string_view text) {
    for (int number = 1; !text.empty(); ++number) {
      const std::string_view line = TakeLine(text);
      const size_t comment = line.find(';');
      if (const auto fields = ReadFields(line.substr(0, comment), number, problems_)) AddJob(*fields);
      if (comment != std::string_view::npos) ReadComment(line.substr(comment + 1));
    }
    if (parts_ > 0)
      Note(parts_, "parts of jobs that were checkpointed (status 2 to 4): their whole is a line of its own");
    if (shapeless_ > 0) Note(shapeless_, "without a number of processors");
    if (endless_ > 0) Note(endless_, "without a submission or run time: most were cancelled before they started");
    return std::move(workload_);
  }

 private:
  void Note(int64_t count, std::string_view what) {
    workload_.notes.push_back(fmt::format("{} lines are left out: {}", count, what));
  }

  void ReadComment(std::string_view comment) {
    constexpr std::string_view kKey = "UnixStartTime:";
    if (TakeWord(comment) != kKey) return;
    if (const auto at = WholeNumber(TakeWord(comment), 0, kMost)) workload_.begins = absl::FromUnixSeconds(*at);
  }

  int64_t TotalOf(int64_t processors) const {
    const auto parts = [](int64_t whole, int64_t part) { return (whole + part - 1) / part; };
    const int64_t units = parts(processors, shape_.processors);
    if (shape_.gpus_per_node == 0 || units <= shape_.gpus_per_node) return units;
    return parts(units, shape_.gpus_per_node) * shape_.gpus_per_node;
  }

  void AddJob(const Fields& fields) {
    const int64_t processors = fields[kRequested] > 0 ? fields[kRequested] : fields[kAllocated];
    const bool part = fields[kStatus] >= 2 && fields[kStatus] <= 4;
    if (part || processors <= 0 || fields[kRunTime] < 0 || fields[kSubmit] < 0) {
      ++(part ? parts_ : processors <= 0 ? shapeless_ : endless_);
      return;
    }
    Submission& job = workload_.jobs.emplace_back();
    job.at = absl::Seconds(fields[kSubmit]);
    job.user = fields[kUser] < 0 ? "unknown" : fmt::format("user-{}", fields[kUser]);
    job.profile = fmt::format("{}:{}", shape_.profile, TotalOf(processors));
    job.runs = absl::Seconds(fields[kRunTime]);
    if (fields[kRequestedTime] > 0) job.time_limit = absl::Seconds(fields[kRequestedTime]);
  }

  const SwfShape& shape_;
  decode::Problems& problems_;
  Workload workload_;
  int64_t parts_ = 0;
  int64_t shapeless_ = 0;
  int64_t endless_ = 0;
};

}  // namespace

Workload ReadSwf(std::string_view text, const SwfShape& shape, decode::Problems& problems) {
  return Reader(shape, problems).Read(text);
}

}  // namespace tp::simulate
