#include "store/words.h"

namespace tp::store {
namespace {

// The words of DESIGN 4, which never change.
template <typename E>
std::string_view NameBelow(E value, int count) {
  return static_cast<int>(value) < count ? core::Name(value) : std::string_view();
}

}  // namespace

std::string_view Word(core::JobState value) { return NameBelow(value, core::kJobStateCount); }
std::string_view Word(core::RunWord value) { return NameBelow(value, core::kRunWordCount); }
std::string_view Word(core::FailureKind value) { return NameBelow(value, core::kFailureKindCount); }

std::string_view Word(core::AfterWhen value) {
  switch (value) {
    case core::AfterWhen::kSuccess:
      return "success";
    case core::AfterWhen::kFailure:
      return "failure";
    case core::AfterWhen::kAlways:
      return "always";
  }
  return {};
}

std::string_view Word(core::NoticeEvent value) {
  switch (value) {
    case core::NoticeEvent::kSucceeded:
      return "succeeded";
    case core::NoticeEvent::kFailed:
      return "failed";
    case core::NoticeEvent::kStopped:
      return "stopped";
    case core::NoticeEvent::kPaused:
      return "paused";
    case core::NoticeEvent::kIdle:
      return "idle";
  }
  return {};
}

std::string_view Word(core::MarkKind value) {
  switch (value) {
    case core::MarkKind::kDrained:
      return "drained";
    case core::MarkKind::kDead:
      return "dead";
  }
  return {};
}

std::string_view Word(core::Handover value) {
  switch (value) {
    case core::Handover::kSending:
      return "sending";
    case core::Handover::kIndeterminate:
      return "indeterminate";
    case core::Handover::kAccepted:
      return "accepted";
  }
  return {};
}

std::string_view Word(core::EndCause value) {
  switch (value) {
    case core::EndCause::kFinished:
      return "finished";
    case core::EndCause::kRankFailed:
      return "rank_failed";
    case core::EndCause::kEvicted:
      return "evicted";
    case core::EndCause::kRankLost:
      return "rank_lost";
    case core::EndCause::kEngine:
      return "engine";
    case core::EndCause::kStop:
      return "stop";
    case core::EndCause::kPause:
      return "pause";
    case core::EndCause::kWindow:
      return "window";
    case core::EndCause::kTimeLimit:
      return "time_limit";
    case core::EndCause::kStartTimeout:
      return "start_timeout";
    case core::EndCause::kPendingTimeout:
      return "pending_timeout";
    case core::EndCause::kRejected:
      return "rejected";
    case core::EndCause::kRefused:
      return "refused";
    case core::EndCause::kAbsent:
      return "absent";
  }
  return {};
}

std::string_view Word(core::SignalSent value) {
  switch (value) {
    case core::SignalSent::kNone:
      return "none";
    case core::SignalSent::kWarn:
      return "warn";
    case core::SignalSent::kTerm:
      return "term";
    case core::SignalSent::kKill:
      return "kill";
  }
  return {};
}

std::string_view Word(core::FenceState value) {
  switch (value) {
    case core::FenceState::kNotAsked:
      return "not_asked";
    case core::FenceState::kAsked:
      return "asked";
    case core::FenceState::kWon:
      return "won";
  }
  return {};
}

std::string_view Word(Claim value) {
  switch (value) {
    case Claim::kNone:
      return "none";
    case Claim::kThisLaunch:
      return "this_launch";
    case Claim::kOtherLaunch:
      return "other_launch";
    case Claim::kFenced:
      return "fenced";
  }
  return {};
}

std::string_view Word(Tree value) {
  switch (value) {
    case Tree::kUnknown:
      return "unknown";
    case Tree::kAlive:
      return "alive";
    case Tree::kGone:
      return "gone";
  }
  return {};
}

std::string_view Word(EngineEnd value) {
  switch (value) {
    case EngineEnd::kNone:
      return "none";
    case EngineEnd::kExitedZero:
      return "exited_zero";
    case EngineEnd::kFailed:
      return "failed";
    case EngineEnd::kOutOfMemory:
      return "out_of_memory";
    case EngineEnd::kEvicted:
      return "evicted";
    case EngineEnd::kPreempted:
      return "preempted";
    case EngineEnd::kNodeLost:
      return "node_lost";
    case EngineEnd::kTimeLimit:
      return "time_limit";
    case EngineEnd::kImage:
      return "image";
  }
  return {};
}

std::string_view Word(ExitKind value) {
  switch (value) {
    case ExitKind::kExited:
      return "exited";
    case ExitKind::kKilled:
      return "killed";
    case ExitKind::kNotStarted:
      return "not_started";
  }
  return {};
}

std::string_view Word(SignalledBy value) {
  switch (value) {
    case SignalledBy::kNobody:
      return "nobody";
    case SignalledBy::kTpd:
      return "tpd";
    case SignalledBy::kOther:
      return "other";
  }
  return {};
}

std::string_view Word(StopLevel value) {
  switch (value) {
    case StopLevel::kWarn:
      return "warn";
    case StopLevel::kTerm:
      return "term";
    case StopLevel::kKill:
      return "kill";
  }
  return {};
}

std::string_view Word(OutboxKind value) {
  switch (value) {
    case OutboxKind::kLaunch:
      return "launch";
    case OutboxKind::kFence:
      return "fence";
    case OutboxKind::kSignal:
      return "signal";
    case OutboxKind::kRemove:
      return "remove";
  }
  return {};
}

std::string_view Word(Role value) {
  switch (value) {
    case Role::kViewer:
      return "viewer";
    case Role::kUser:
      return "user";
    case Role::kOperator:
      return "operator";
    case Role::kAdmin:
      return "admin";
  }
  return {};
}

}  // namespace tp::store
