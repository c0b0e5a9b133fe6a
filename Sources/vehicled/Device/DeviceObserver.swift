// The interface through which a device reports changes.

import Protocols

/// The observer of a device. All changes caused by one input arrive in the same turn of the loop, `deviceTurnEnded` last.
@Loop protocol DeviceObserver: AnyObject {
  func deviceUpdated(_ readings: [Reading])
  func deviceStateChanged(_ state: String)
  func deviceSchemaChanged(_ schema: Schema)
  func deviceReports(event: String, text: String)
  func deviceLinkChanged(_ port: LinkSupervisor)
  /// `fault` or `lease` has changed.
  func deviceFaultOrLeaseChanged()
  /// The device subscribes to another device's property.
  func deviceObserves(_ reference: String)
  func deviceTurnEnded()
}
