// The consequences of a reply, or of a missing one, for the adapter session: what was learned about the vehicle and the adapter, and what
// the session must do with the adapter next.

struct Reaction: Sendable {
  /// What the reply has shown.
  struct Notices: OptionSet, Sendable {
    let rawValue: UInt8

    /// The reply was usable.
    static let usableReply = Notices(rawValue: 1)
    /// The vehicle responded to the fast request (FastPoll.swift), or detection restarts.
    static let vehicleResponded = Notices(rawValue: 2)
    /// The fast request failed and was replaced by another one.
    static let replacedFastRequest = Notices(rawValue: 4)
    /// The adapter counts frames instead of messages in STPX.
    static let stpxCountsFrames = Notices(rawValue: 8)
    /// The adapter does not support STPX.
    static let rejectsSTPX = Notices(rawValue: 16)
  }

  private(set) var notices: Notices = []
  /// The protocol that the adapter has detected.
  private(set) var detectedProtocol: OBDProtocol?
  private(set) var nextAction = AdapterAction.none

  mutating func note(_ notice: Notices) { notices.insert(notice) }
  mutating func noteProtocol(_ detected: OBDProtocol) { detectedProtocol = detected }
  mutating func require(_ action: AdapterAction) { nextAction = action }
}
