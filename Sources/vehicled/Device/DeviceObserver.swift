// What a device reports, and to whom: the board's state of it.

import Protocols

/// Where a device tells what it learns. All of it comes within one turn of the loop, `deviceTurnEnded` last.
@Loop protocol DeviceObserver: AnyObject {
  func deviceLearned(_ readings: [Reading])
  func deviceSays(_ word: String)
  func deviceDeclares(_ schema: Schema)
  func deviceReports(event: String, text: String)
  func deviceLinkChanged(_ port: Port)
  /// What `fault` or `lease` says is something else now.
  func deviceStandingChanged()
  /// The device wants to be told of another device's property from now on.
  func deviceObserves(_ reference: String)
  func deviceTurnEnded()
}
