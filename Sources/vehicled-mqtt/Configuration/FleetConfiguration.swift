// The checked configuration of batches for a fleet, as a plain value.

import Observations
import Protocols

struct FleetConfiguration {
  /// The owner of the vehicles, in topics.
  var tenant: String
  /// The name of this vehicle in topics; nil for the host name.
  var vehicle: String?
  var selection = Selection(personal: MQTTConfiguration.personal)
  /// The time that a batch covers.
  var interval: Nanoseconds = 30 * .second
}
