// Retargeting of the adapter: protocol, header, filter and timeout for a request. A rejected protocol or header stops the requests that need
// it; after any other reply than OK the addressing is unknown.

struct Retargeting: Sendable {
  /// The addressing afterwards.
  let addressing: ECUAddressing
  /// It leads to the ECU of the fast request.
  let isHome: Bool
  let began: Instant
  private let steps: [ECUAddressing.Step]
  private var position = 0

  init(_ addressing: ECUAddressing, steps: [ECUAddressing.Step], isHome: Bool, at now: Instant) {
    (self.addressing, self.steps, self.isHome, began) = (addressing, steps, isHome, now)
  }

  var isDone: Bool { position >= steps.count }
  /// The next command, carriage return included.
  var command: [UInt8] { isDone ? [] : steps[position].bytes + [carriageReturn] }
  var text: String { String(decoding: command.dropLast(), as: UTF8.self) }

  /// What a reply means.
  enum Answer {
    case accepted
    /// The adapter does not support the command, which is not required; `hasNoFilter`: responses of other ECUs are not filtered out.
    case skipped(hasNoFilter: Bool)
    /// Without this command the ECU cannot be addressed.
    case rejected
    case unreadable
  }

  mutating func replied(_ dialogue: ELMDialogue) -> Answer {
    switch dialogue.isAcknowledged ? .done : SetupAnswer(dialogue.reply[dialogue.body...]) {
    case .done:
      position += hasAlternative ? 2 : 1
      return .accepted
    case .unknownCommand:
      if case .required = steps[position] { return .rejected }
      let isFilter = if case .preferred = steps[position] { true } else { false }
      defer { position += 1 }
      return .skipped(hasNoFilter: isFilter && !hasAlternative)
    case .nonsense: return .unreadable
    }
  }

  /// The next command is an alternative to this one.
  private var hasAlternative: Bool {
    guard position + 1 < steps.count, case .instead = steps[position + 1] else { return false }
    return true
  }
}
