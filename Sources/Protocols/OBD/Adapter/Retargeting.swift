// The commands that retarget the adapter for a request: protocol, header, filter and timeout. If the adapter rejects a protocol or header,
// the requests that need it are not sent. After an unreadable reply, the addressing is unknown.

struct Retargeting: Sendable {
  /// The addressing after the last command.
  let addressing: ECUAddressing
  /// Whether the target is the ECU of the fast request, the request that is polled at the device's rate.
  let isForFastRequest: Bool
  /// The time at which the first command was sent.
  let began: Instant
  private let steps: [ECUAddressing.Step]
  private var position = 0

  init(_ addressing: ECUAddressing, steps: [ECUAddressing.Step], isForFastRequest: Bool, at now: Instant) {
    (self.addressing, self.steps, self.isForFastRequest, began) = (addressing, steps, isForFastRequest, now)
  }

  var isDone: Bool { position >= steps.count }
  /// The next command, carriage return included.
  var command: [UInt8] { isDone ? [] : steps[position].bytes + [carriageReturn] }
  var text: String { String(decoding: command.dropLast(), as: UTF8.self) }

  /// The result of a command.
  enum Answer {
    case accepted
    /// The adapter does not support the command, but the command is not required. `hasNoFilter`: it was the last one that can set a filter.
    case skipped(hasNoFilter: Bool)
    /// The adapter does not support the command, and the command is required.
    case rejected
    case unreadable
  }

  /// Evaluates the reply to the command. Continues with the next command unless this one was rejected or its reply is unreadable.
  mutating func replied(_ dialogue: ELMDialogue) -> Answer {
    switch dialogue.isAcknowledged ? .done : SetupReply(dialogue.reply[dialogue.bodyStart...]) {
    case .done:
      position += hasFallback ? 2 : 1
      return .accepted
    case .unknownCommand:
      if case .required = steps[position] { return .rejected }
      let isFilter = if case .preferred = steps[position] { true } else { false }
      defer { position += 1 }
      return .skipped(hasNoFilter: isFilter && !hasFallback)
    case .unreadable: return .unreadable
    }
  }

  /// Whether the next command is the fallback for this one.
  private var hasFallback: Bool {
    guard position + 1 < steps.count, case .fallback = steps[position + 1] else { return false }
    return true
  }
}
