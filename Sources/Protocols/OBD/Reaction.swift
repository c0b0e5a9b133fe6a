// The consequences of a vehicle's reply, or of a failed request, for the adapter: what it reveals about the adapter, and what the adapter
// must do.

struct Reaction: Sendable {
  /// What the reply has revealed.
  struct Notices: OptionSet, Sendable {
    let rawValue: UInt8

    /// The reply was usable.
    static let usableReply = Notices(rawValue: 1)
    /// The vehicle has answered the fast request (FastPoll.swift).
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
