// Counts the failures of the adapter since the last response of the vehicle. Repeated failures are reported; if they continue, the adapter
// is reinitialised.

struct AdapterFailureCounters: Sendable {
  /// The number of consecutive unusable replies after which a fault is reported, and the number after which the adapter is reinitialised.
  private static let (minUnusableToReport, maxUnusable) = (4, 10)
  private static let maxTimeouts = 3

  /// The faults of an adapter that does not reply, and of unusable replies, to which the reason is appended.
  private let (silent, unusable): (String, String)
  private var unusableReplies = 0
  private var timeouts = 0

  enum Consequence { case none, resynchronise, needsSetup }

  init(silent: String, unusable: String) { (self.silent, self.unusable) = (silent, unusable) }

  mutating func reset() { (unusableReplies, timeouts) = (0, 0) }
  /// Resets the count of unusable replies, because another request is polled.
  mutating func resetUnusable() { unusableReplies = 0 }

  /// Counts a failure, and returns its consequence.
  mutating func count(_ failure: AdapterFailure, _ values: inout ValueTable, _ effects: inout Effects) -> Consequence {
    switch failure {
    case .timeout:
      timeouts += 1
      values.publish(fault: silent, &effects)
      values.publish(status: .degraded, &effects)
      return timeouts >= Self.maxTimeouts ? .needsSetup : .resynchronise
    case .overflow:
      return count(.unusable("no prompt in \(ELMDialogue.maxReplyLength) bytes", resynchronising: true), &values, &effects)
    case .unusable(let reason, let resynchronising):
      unusableReplies += 1
      if unusableReplies >= Self.minUnusableToReport {
        values.publish(fault: "\(unusable) (\(reason)): reinitialising the adapter if this continues", &effects)
        values.publish(status: .degraded, &effects)
      }
      return unusableReplies >= Self.maxUnusable ? .needsSetup : resynchronising ? .resynchronise : .none
    }
  }
}
