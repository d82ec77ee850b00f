// naga includes this in every text, and uses nothing of it.
#pragma once
