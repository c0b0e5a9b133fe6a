// A dialogue without commands: each frame carries its address, the ECUs' addresses show the protocol, and the adapter has neither a voltmeter
// nor a sleep command.

/// The lower half of the obd kind for an adapter that is not set up for a request.
protocol CommandlessDialogue: AdapterDialogue {}

extension CommandlessDialogue {
  var addressing: ECUAddressing? { nil }
  func isSet(to addressing: ECUAddressing) -> Bool { true }
  func steps(to addressing: ECUAddressing) -> [ECUAddressing.Step] { [] }
  mutating func retarget(to destination: ECUAddressing, fastTarget: Target?, at now: Instant, _ effects: inout Effects) -> AdapterEvent {
    .none
  }
  mutating func apply(_ change: Queries.Outcome.Addressing) {}

  var hasLostEchoSetting: Bool { false }
  mutating func noteEchoHandled() {}
  var setupProblem: String? { nil }
  mutating func restore(_ stored: [String: [UInt8]]) {}
  mutating func tryNextBaudRate(_ effects: inout Effects) -> Bool { false }

  var isAcknowledged: Bool { false }
  var unexpectedText: [UInt8]? { nil }
  var usesSTPX: Bool { false }
  mutating func overflowed(at now: Instant, _ values: inout ValueTable, _ effects: inout Effects) -> AdapterEvent { .none }
  mutating func statusReceived(_ status: ELMStatus, at now: Instant, _ values: inout ValueTable, _ effects: inout Effects) -> AdapterEvent {
    .none
  }

  mutating func identifyProtocol() {}
  mutating func measureVoltage(isProbe: Bool, at now: Instant, _ effects: inout Effects) {}
  mutating func enterLowPower(until: Instant) {}
}
