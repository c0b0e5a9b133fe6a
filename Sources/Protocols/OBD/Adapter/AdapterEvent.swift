// What the adapter session reports to the others.

/// What happened, for the others.
enum AdapterEvent {
  case none
  /// The setup is done.
  case ready
  /// The reply to a command of the others is complete.
  case replied
  /// A command of the others failed; `count` follows.
  case failed(AdapterFailure)
  /// The adapter needs all its settings: `beginSetup` follows.
  case needsSetup
  /// The adapter fails for now: `rest` follows.
  case needsRest(until: Instant, String)
  /// No adapter responds: `nextSpeed` or `disconnect` follows.
  case gaveUp(String)
  /// Retargeting took this long; nil: after a setup, which takes longer.
  case retargeted(took: Nanoseconds?)
  /// The adapter cannot address this ECU.
  case rejected(Target?, String)
  case identified(VehicleBus?)
  /// In V; nil: not supported, or unreadable.
  case measured(Double?, isProbe: Bool)
  case measurementFailed(AdapterFailure)
  case staysAwake
}

/// A command that brought no usable reply.
enum AdapterFailure {
  case timeout
  /// More bytes than a reply can have.
  case overflow
  case unusable(String, resynchronising: Bool)
}

extension AdapterSession {
  private static let sleepTakes: Nanoseconds = 3 * .second

  var isReady: Bool { if case .ready = state { true } else { false } }
  /// The reason why the link is down.
  var reasonDown: String? { if case .down(let reason) = state { reason } else { nil } }
  /// The reason why no query can be sent, not even later.
  var reasonUnavailable: String? { if case .resting(_, let reason) = state { reason } else { reasonDown } }

  /// The request in flight carries its header.
  var isExtended: Bool { dialogue.command.starts(with: "STPX".utf8) }

  /// The adapter has lost its settings, or will.
  func lost(_ status: ELMStatus, at now: Instant, _ values: inout ValueTable, _ effects: inout Effects) -> AdapterEvent {
    values.publish(fault: status.message, &effects)
    return status.demand == .wake ? .needsRest(until: now &+ Self.sleepTakes, status.message) : .needsSetup
  }
}
