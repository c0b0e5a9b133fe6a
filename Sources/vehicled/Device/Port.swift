// Keeps one link of a device up: opens it, tells the device what it carries, and when it dies tries again, first after a
// second, then after ever longer to a minute, with jitter so that many do not come at once. Always knows why it is down.

import CLinux
import Protocols

@Loop final class Port: LinkOwner {
  /// Where the link stands. Times are monotonic; a reason is in a person's words.
  enum State {
    case down(String)
    case connecting
    case up
  }

  let role: LinkRole
  let url: LinkURL
  private(set) var state: State = .down("not started")
  /// Wall time of the last change of state, and of the next attempt, in microseconds.
  private(set) var since = Clock.wall()
  private(set) var nextAttempt: Int64?

  /// How often it came up, and how many bytes it has carried.
  private(set) var connections = 0
  private(set) var carried = (received: 0, sent: 0)

  private unowned let device: Device
  private var link: (any Link)?
  /// Stands for the will that was left for this link.
  private(set) var ward: Guardian.GuardedLink?
  private var backoff = Backoff()
  /// The machine gave the link up.
  private var isGivenUp = false
  private lazy var timer = Timer { [weak self] _ in self?.open() }

  init(_ role: LinkRole, _ url: LinkURL, device: Device) {
    self.role = role
    self.url = url
    self.device = device
  }

  var name: LinkName { role.name }
  /// What the link waits for while it is connecting.
  var words: String? { link?.words }
  var details: [String: String] { link?.details ?? [:] }

  var isUp: Bool {
    if case .up = state { true } else { false }
  }

  /// Begins to connect now, whatever the wait was.
  func open() {
    guard link == nil else { return }
    timer.set(nil)
    change(.connecting)
    link = url.open(for: self, as: role, with: device.equipment)
  }

  /// Gives the link up and stays down.
  func close(_ reason: String) {
    leave(nil)
    link?.close()
    link = nil
    timer.set(nil)
    backoff = Backoff()
    change(.down(reason))
  }

  /// Gives the link up and tries again after the usual wait.
  func reset(_ reason: String) {
    guard let link else { return }
    isGivenUp = true
    guard !link.hangUp(reason) else { return }
    leave(nil)
    link.close()
    linkWentDown(reason, final: false)
  }

  /// What the guardian says over the link in our place, until the link is down.
  func leave(_ will: Will?) {
    let guardian = device.equipment.guardian
    if let ward { guardian.release(ward) }
    ward = nil
    guard let will, let descriptor = link?.descriptor else { return }
    ward = guardian.register(will, over: descriptor) { [weak device] in device?.revokeLease($0) }
    device.willChanged(self)
  }

  /// How many bytes the other side has not acknowledged, where the link can tell.
  var backlog: Int? {
    guard let descriptor = link?.descriptor else { return nil }
    let count = clinux_unsent(descriptor)
    return count < 0 ? nil : Int(count)
  }

  /// Lets the line run at another speed; how long it has held counts from now.
  func setBaud(_ baud: Int) {
    backoff.linkCameUp(at: Clock.monotonic())
    link?.setBaud(baud)
  }

  func send(_ bytes: [UInt8], id: SendID?) {
    guard case .up = state, let link else {
      if let id { device.take(.sent(id, failure: "the link is down")) }
      return
    }
    carried.sent += bytes.count
    link.send(bytes, id: id)
  }

  func linkCameUp(maximumSend: Int?) {
    backoff.linkCameUp(at: Clock.monotonic())
    isGivenUp = false
    connections += 1
    change(.up)
    device.take(.linkChanged(name, .up(maximumSend: maximumSend, baud: link?.baud)))
  }

  func linkReceived(_ bytes: [UInt8]) {
    carried.received += bytes.count
    device.received(bytes, from: self)
  }

  func linkSent(_ id: SendID, failure: String?) {
    device.take(.sent(id, failure: failure))
  }

  func linkHasNews() { device.portHasNews(self) }
  func linkRefused(_ whom: String) { device.take(.linkChanged(name, .refused(whom))) }

  func linkLostPeer(_ reason: String) {
    leave(nil)
    change(.down(reason))
    if link != nil { change(.connecting) }
  }

  func linkWentDown(_ reason: String, final: Bool) {
    leave(nil)
    link = nil
    guard !final else { return change(.down(reason)) }
    let wait = backoff.linkWentDown(at: Clock.monotonic(), isGivenUp: isGivenUp)
    let jittered = wait == Backoff.first ? wait : Int64(Double(wait) * Double.random(in: 0.75...1))
    timer.set(Clock.monotonic() + jittered)
    change(.down(reason), nextAttemptIn: jittered)
  }

  private func change(_ new: State, nextAttemptIn wait: Nanoseconds? = nil) {
    let old = state
    state = new
    since = Clock.wall()
    nextAttempt = wait.map { since + $0 / .microsecond }
    device.portChanged(self, from: old)
  }
}
