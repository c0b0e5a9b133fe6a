// The status messages of an ELM327, and the consequence of each. Only whole lines are recognised, because a status can contain hex
// digits ("NO DATA" contains DA). Source: ELM327 data sheet, "Error Messages and Alerts"; clones, which drop spaces after ATS0 and append
// the text to a truncated frame.

/// A status message of the adapter.
enum ELMStatus: String, CaseIterable, Sendable {
  case ok = "OK"
  case notUnderstood = "?"
  case noData = "NO DATA"
  case unableToConnect = "UNABLE TO CONNECT"
  case busInitError = "BUS INIT: ERROR"
  case busBusy = "BUS BUSY"
  case busError = "BUS ERROR"
  case canError = "CAN ERROR"
  case dataError = "DATA ERROR"
  case lineDataError = "<DATA ERROR"
  case lineReceiveError = "<RX ERROR"
  case bufferFull = "BUFFER FULL"
  case feedbackError = "FB ERROR"
  case internalError = "ERR"
  case stopped = "STOPPED"
  case lowVoltageReset = "LV RESET"
  case activityAlert = "ACT ALERT"
  case lowPowerAlert = "LP ALERT"
  case banner = "ELM327"

  /// What a status means for the command, the vehicle or the adapter.
  enum Consequence: Sendable {
    /// The adapter has accepted a setting.
    case acknowledge
    /// The adapter does not support the command.
    case unsupported
    /// The vehicle does not respond. If this is reported three times in a row, the vehicle may be off.
    case noResponse
    /// The bus does not work: pause polling at the first such status, unless a liveness check is answered.
    case backOff
    /// The bus is busy, or there is noise or interference on it: retry; after repeated errors, pause and reinitialise the adapter.
    case retry
    /// The reply is corrupt: discard it. The next command can be sent.
    case discard
    /// A byte interrupted a running command: resynchronise.
    case resynchronise
    /// The chip restarted and has lost its settings.
    case reinitialise
    /// The adapter is going to sleep: wake and reinitialise it.
    case wake
    /// The status has no consequences.
    case ignore
  }

  var consequence: Consequence {
    switch self {
    case .ok: .acknowledge
    case .notUnderstood: .unsupported
    case .noData: .noResponse
    case .unableToConnect, .busInitError, .canError, .feedbackError: .backOff
    case .busBusy, .busError: .retry
    case .dataError, .lineDataError, .lineReceiveError, .bufferFull: .discard
    case .stopped: .resynchronise
    case .internalError, .lowVoltageReset, .banner: .reinitialise
    case .lowPowerAlert: .wake
    case .activityAlert: .ignore
    }
  }

  /// The message for the user: what happened; what to do.
  var message: String {
    switch self {
    case .ok: "the adapter sent OK instead of data"
    case .notUnderstood: "the adapter does not support the command: it may be a clone with a reduced command set"
    case .noData: "no response from the vehicle: it may be off"
    case .unableToConnect: "protocol detection failed: no OBD protocol responds; switch the ignition on"
    case .busInitError: "bus initialisation failed; switch the ignition on"
    case .busBusy: "the bus is busy; disconnect other testers from the vehicle"
    case .busError: "bus error: noisy or invalid signal; check the OBD connector"
    case .canError: "no CAN bus at the OBD connector; wake the vehicle, or check the contacts"
    case .dataError, .lineDataError: "the adapter received corrupt data; check the OBD connector"
    case .lineReceiveError: "the adapter received corrupt frames; check the OBD connector and the bus speed"
    case .bufferFull: "the adapter's buffer overflowed; raise its baud rate"
    case .feedbackError: "the adapter cannot drive the bus; check its wiring or replace it"
    case .internalError: "internal error of the adapter: reinitialising it"
    case .stopped: "the adapter was interrupted"
    case .lowVoltageReset: "the adapter lost power for a moment; check the OBD connector and the 12 V battery"
    case .activityAlert: "the adapter will sleep soon"
    case .lowPowerAlert: "the adapter went to sleep: waking it"
    case .banner: "the adapter restarted; check its power supply"
    }
  }

  /// The status texts without their spaces, because some clones omit the spaces.
  private static let compact: [(status: ELMStatus, text: [UInt8])] = allCases.map { ($0, $0.rawValue.utf8.filter { $0 != space }) }
  /// The statuses that an adapter appends to a truncated data line.
  private static let appended: Set<ELMStatus> = [
    .bufferFull, .stopped, .lineDataError, .lineReceiveError, .dataError, .canError, .lowVoltageReset,
  ]

  /// The status of a line without its spaces, or nil for any other text.
  static func of(compactLine line: [UInt8]) -> ELMStatus? {
    let line = line.first == UInt8(ascii: "!") ? Array(line.dropFirst()) : line
    for (status, text) in compact {
      switch status {
      case .banner: if line.starts(with: text) { return status }
      case .internalError: if line.count == 5, line.starts(with: text), line.dropFirst(3).allSatisfy(isDigit) { return status }
      default: if line == text { return status }
      }
    }
    return compact.first { appended.contains($0.status) && line.count > $0.text.count && line.suffix($0.text.count) == $0.text[...] }?
      .status
  }
}

/// The content of one line of a reply.
enum ELMLine: Equatable {
  /// Only a notice: `SEARCHING...`, `BUS INIT: OK`, dots, blanks.
  case nothing
  /// Data after an optional notice: hex digits and colons, without spaces.
  case hex([UInt8])
  case status(ELMStatus)
  case text

  /// Parses a line: notices at its start are skipped; the rest is data, a status or other text.
  init(_ line: some Sequence<UInt8>) {
    var rest = line.filter { $0 != space && $0 != tab }[...]
    if rest.starts(with: "SEARCHING".utf8) { rest = rest.dropFirst(9).drop { $0 == dot } }
    if rest.starts(with: "BUSINIT:".utf8) {
      rest = rest.dropFirst(8).drop { $0 == dot }
      if rest.starts(with: "OK".utf8) {
        rest = rest.dropFirst(2)
      } else if rest.starts(with: "ERROR".utf8) || rest.starts(with: "...ERROR".utf8) {
        self = .status(.busInitError)
        return
      }
    }
    if rest.allSatisfy({ $0 == dot }) {
      self = .nothing
    } else if rest.allSatisfy({ isHexDigit($0) || $0 == colon }) {
      self = .hex(Array(rest))
    } else if let status = ELMStatus.of(compactLine: Array(rest)) {
      self = status == .activityAlert ? .nothing : .status(status)
    } else {
      self = .text
    }
  }
}
